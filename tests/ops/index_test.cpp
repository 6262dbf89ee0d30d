#include "tests/check.hpp"

using namespace tapegrad;

namespace {

using Inputs = std::vector<Tensor>;

Tensor counted(const Shape& shape) { return reshape(arange(element_count(shape)), shape) + 1; }
Tensor uneven(const Shape& shape) { return sin(counted(shape) * Real(1.7)); }
Tensor cubed(const Tensor& x) { return x * x * x; }

Index index_column(const std::vector<int>& column) { return Index(Shape{column.size(), 1}, column); }
Mask mask_column(const std::vector<bool>& column) { return Mask(Shape{column.size(), 1}, column); }

template <class F>
void check_linear_op(F f, const Shape& shape) {
  check_gradients([&](const Inputs& x) { return cubed(f(x[0])) + square(f(cubed(x[0]))); }, {uneven(shape)});
}

}  // namespace

TEST_CASE("index_select takes positions along an axis", "[index]") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}};
  check_close(index_select(x, 0, {1, 1, 0}), Tensor{{4, 5, 6}, {4, 5, 6}, {1, 2, 3}});
  check_close(index_select(x, -1, {2, 0}), Tensor{{3, 1}, {6, 4}});
  CHECK(index_select(x, 1, Index(Shape{0})).shape() == Shape{2, 0});
  CHECK(index_select(zeros({0, 3}), 1, {2}).shape() == Shape{0, 1});
  check_linear_op([](const Tensor& x) { return index_select(x, 1, {2, 0, 2}); }, {2, 3, 2});
  check_refused(
      [&] {
        index_select(x, 0, {0, 2});
      },
      "[index_select] a position must be at least 0 and below the axis's extent; got 2 and 2");
  check_refused([&] { index_select(x, 0, {-1}); }, "[index_select]");
  check_refused([&] { index_select(zeros({0}), 0, {0}); }, "[index_select]");
  check_refused([&] { index_select(x, 0, {{0, 1}}); }, "[index_select] the index must be 1-D; got (1,2)");
  check_refused([&] { index_select(Tensor(1), 0, {0}); }, "[index_select]");
}

TEST_CASE("gradients of a position that is read twice add up", "[index]") {
  const Tensor weights{1, 10, 100};
  check_close(gradient_of(
                  [&](const Tensor& x) {
                    return index_select(x, 0, {0, 0, 2}) * weights;
                  },
                  Tensor{1, 2, 3}),
              Tensor{11, 0, 100});
  check_close(gradient_of(
                  [&](const Tensor& x) {
                    return gather(x, 0, {0, 0, 2}) * weights;
                  },
                  Tensor{1, 2, 3}),
              Tensor{11, 0, 100});
  check_close(index_add(zeros({3}), 0, {0, 0, 2}, Tensor{1, 2, 3}), Tensor{3, 0, 3});
  check_close(scatter_add(Tensor{1, 2, 3}, 0, {0, 0, 2}, {3}), Tensor{3, 0, 3});
}

TEST_CASE("index_add adds at positions and leaves its operands alone", "[index]") {
  const Tensor x{{1, 2}, {3, 4}};
  check_close(index_add(x, 0, {1, 1}, Tensor{{10, 20}, {100, 200}}), Tensor{{1, 2}, {113, 224}});
  check_close(index_add(x, 1, {0}, Tensor{{10}, {20}}), Tensor{{11, 2}, {23, 4}});
  check_close(index_add(x, 0, Index(Shape{0}), zeros({0, 2})), x);
  check_close(x, Tensor{{1, 2}, {3, 4}});
  check_gradients(
      [](const Inputs& in) {
        return cubed(index_add(in[0], 1, {2, 0, 2}, in[1]));
      },
      {uneven({2, 3}), uneven({2, 3}) * Real(0.5)});
  check_refused([&] { index_add(x, 0, {0, 2}, ones({2, 2})); }, "[index_add] a position must be");
  check_refused(
      [&] {
        index_add(x, 0, {0}, ones({2, 2}));
      },
      "[index_add] source must have the shape that index_select would give; got (2,2) and (1,2)");
  check_refused([&] { index_add(x, 2, {0}, x); }, "[index_add]");
}

TEST_CASE("gather reads one position for each element", "[index]") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}};
  check_close(gather(x, 1, {{2, 0}, {1, 1}}), Tensor{{3, 1}, {5, 5}});
  check_close(gather(x, 0, {{1, 0, 1}}), Tensor{{4, 2, 6}});
  check_close(gather(x, 0, index_column({1, 0, 1})),
              Tensor{{4}, {1}, {4}});  // smaller than x off the axis, longer along it
  const Index deep(Shape{2, 1, 2}, std::vector<int>{2, 0, 1, 1});
  check_close(gather(counted({2, 3, 2}), 1, deep), Tensor{{{5, 2}}, {{9, 10}}});
  CHECK(gather(x, 1, Index(Shape{2, 0})).shape() == Shape{2, 0});
  CHECK(gather(zeros({2, 0}), 1, Index(Shape{2, 0})).shape() == Shape{2, 0});
  check_linear_op([](const Tensor& x) { return gather(x, 0, {{1, 0}, {1, 1}, {0, 0}}); }, {2, 3});
  check_linear_op([&](const Tensor& x) { return gather(x, -2, deep); }, {2, 3, 2});
  check_refused([&] { gather(x, 1, index_column({3})); },
                "[gather] a position must be at least 0 and below the axis's extent");
  check_refused([&] { gather(x, 1, index_column({-1})); }, "[gather]");
  check_refused(
      [&] {
        gather(x, 1, index_column({0, 0, 0}));
      },
      "[gather] index must have the array's rank, and extents");
  check_refused([&] { gather(x, 1, {0}); }, "[gather]");
  check_refused([&] { gather(Tensor(1), 0, Index(Shape{})); }, "[gather]");
}

TEST_CASE("scatter_add is gather's adjoint", "[index]") {
  check_close(scatter_add(Tensor{{1, 2}, {3, 4}}, 1, {{2, 2}, {0, 1}}, {2, 3}), Tensor{{0, 0, 3}, {3, 4, 0}});
  check_close(scatter_add(Tensor{{1, 2}}, 0, {{1, 0}}, {2, 3}), Tensor{{0, 2, 0}, {1, 0, 0}});
  check_close(scatter_add(zeros({0, 3}), 0, Index(Shape{0, 3}), {2, 3}), zeros({2, 3}));
  check_linear_op([](const Tensor& x) { return scatter_add(x, 1, {{2, 2}, {0, 1}}, {2, 3}); }, {2, 2});
  check_refused([&] { scatter_add(Tensor{1}, 0, {3}, {3}); }, "[scatter_add] a position must be");
  check_refused([&] { scatter_add(Tensor{1, 2}, 0, {0}, {3}); }, "[scatter_add] x must have index's shape");
  check_refused([&] { scatter_add(Tensor{{1, 2}}, 1, {{0, 0}}, {0, 3}); }, "[scatter_add]");
  check_refused([&] { scatter_add(Tensor{1}, 0, {0}, {std::size_t{1} << 62}); }, "[scatter_add]");
}

TEST_CASE("an index that is written to after the op leaves its gradient alone", "[index]") {
  for (const bool one_axis : {false, true}) {
    Tensor x = Tensor{1, 2, 3}.set_requires_grad();
    Tape tape;
    Index index{0, 1};
    const Tensor y = sum(one_axis ? index_select(x, 0, index) : gather(x, 0, index));
    index.data()[1] = 1 << 30;
    tape.backward(y);
    check_close(x.grad(), Tensor{1, 1, 0});
  }
}

TEST_CASE("masked_select and masked_scatter", "[index]") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}};
  const Mask mask{{true, false, true}, {false, false, true}};
  check_close(masked_select(x, mask), Tensor{1, 3, 6});
  check_close(masked_select(x, Mask{false, true, true}), Tensor{2, 3, 5, 6});
  check_close(masked_select(x, mask_column({true, false})), Tensor{1, 2, 3});
  CHECK(masked_select(x, Mask(Shape{})).shape() == Shape{0});
  CHECK(masked_select(zeros({0, 3}), Mask{true, true, true}).shape() == Shape{0});
  check_close(masked_select(Tensor(3), !Mask(Shape{})), Tensor{3});
  check_close(masked_scatter(Tensor{7, 8, 9}, mask), Tensor{{7, 0, 8}, {0, 0, 9}});
  check_close(masked_scatter(zeros({0}), Mask(Shape{2})), zeros({2}));
  check_linear_op([&](const Tensor& x) { return masked_select(x, mask); }, {2, 3});
  check_linear_op([&](const Tensor& x) { return masked_select(x, Mask{true, false, true}); }, {2, 3});
  check_linear_op([&](const Tensor& x) { return masked_scatter(x, mask); }, {3});
  check_refused(
      [&] {
        masked_select(x, Mask{true, false});
      },
      "[masked_select] the mask must broadcast to x's shape; got (2) and (2,3)");
  check_refused([&] { masked_select(Tensor{1, 2}, mask); }, "[masked_select]");
  check_refused([&] { masked_scatter(Tensor{1, 2}, mask); }, "[masked_scatter] x must have as many elements");
  check_refused([&] { masked_scatter(Tensor{{1, 2, 3}}, mask); }, "[masked_scatter] x must be 1-D");
}

TEST_CASE("masked_fill replaces", "[index]") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}};
  check_close(masked_fill(x, {{true, false, true}, {false, false, true}}, -1), Tensor{{-1, 2, -1}, {4, 5, -1}});
  check_close(masked_fill(x, mask_column({true, false}), -kInf), Tensor{{-kInf, -kInf, -kInf}, {4, 5, 6}});
  CHECK(masked_fill(Tensor(1), !Mask(Shape{}), 2).item() == 2);
  CHECK(masked_fill(zeros({0, 2}), Mask{true, false}, 1).shape() == Shape{0, 2});
  check_linear_op([](const Tensor& x) { return masked_fill(x, {true, false, true}, 2); }, {2, 3});
  check_refused([&] { masked_fill(x, Mask{true, false}, 0); }, "[masked_fill] the mask must broadcast to x's shape");
  check_refused([&] { masked_fill(Tensor{1}, Mask{true, false}, 0); }, "[masked_fill]");
}

TEST_CASE("keep_where and where choose", "[index]") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}};
  check_close(keep_where(x, {true, false, true}), Tensor{{1, 0, 3}, {4, 0, 6}});
  check_close(keep_where(Tensor{1, 2}, mask_column({true, false})), Tensor{{1, 2}, {0, 0}});
  check_close(where({true, false}, Tensor{1, 2}, Tensor{3, 4}), Tensor{1, 4});
  check_close(where(mask_column({true, false}), Tensor{1, 2}, Tensor(9)), Tensor{{1, 2}, {9, 9}});
  CHECK(where(Mask(Shape{0}), Tensor{1}, Tensor(2)).shape() == Shape{0});
  check_linear_op([](const Tensor& x) { return keep_where(x, {{true, false}, {true, true}}); }, {2});
  check_gradients(
      [](const Inputs& in) {
        return cubed(where({{true, false}, {false, true}}, in[0], in[1]));
      },
      {uneven({2}), uneven({2, 1})});
  check_refused([&] { keep_where(x, {true, false}); }, "[keep_where]");
  check_refused([&] { where({true, false}, x, Tensor(1)); }, "[where]");
}

TEST_CASE("a mask is repeated over leading axes, element for element", "[index]") {
  for (const Shape& mask_shape : {Shape{17}, Shape{5, 17}, Shape{1, 17}, Shape{5, 1}, Shape{3, 1, 17}}) {
    const Shape shape{3, 5, 17};
    const Tensor x = uneven(shape);
    Mask mask(mask_shape);
    for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = i % 3 == 1 || i % 7 == 2;
    const Mask full = mask || Mask(shape);
    std::vector<Real> chosen;
    Array kept(shape, Real(0)), filled = x.value(), either(shape, Real(-1));
    const Shape strides = mask_shape.size() == 1       ? Shape{0, 0, 1}
                          : mask_shape == Shape{5, 17} ? Shape{0, 17, 1}
                          : mask_shape == Shape{1, 17} ? Shape{0, 0, 1}
                          : mask_shape == Shape{5, 1}  ? Shape{0, 1, 0}
                                                       : Shape{17, 0, 1};
    for (std::size_t i = 0, n = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 5; ++j) {
        for (std::size_t k = 0; k < 17; ++k, ++n) {
          if (!mask.data()[i * strides[0] + j * strides[1] + k * strides[2]]) continue;
          chosen.push_back(x.value().data()[n]);
          kept.data()[n] = either.data()[n] = x.value().data()[n];
          filled.data()[n] = 4;
        }
      }
    }
    CAPTURE(to_text(mask_shape));
    check_close(keep_where(x, mask), Tensor(kept));
    check_close(masked_fill(x, mask, 4), Tensor(filled));
    check_close(where(mask, x, Tensor(-1)), Tensor(either));
    check_close(masked_select(x, mask), reshape(Tensor(masked_select(x, full).value()), {chosen.size()}));
    REQUIRE(masked_select(x, mask).size() == chosen.size());
    CHECK(std::equal(chosen.begin(), chosen.end(), masked_select(x, mask).value().data()));
  }
}

TEST_CASE("NaN in removed places leaves values and gradients exactly 0", "[index]") {
  const Mask keep{true, false, false};
  const Tensor x{1, kNaN, kInf};
  const Tensor dy{2, kNaN, kInf};
  check_close(keep_where(x, keep), Tensor{1, 0, 0});
  check_close(masked_fill(x, !keep, 0), Tensor{1, 0, 0});
  check_close(where(keep, x, Tensor(0)), Tensor{1, 0, 0});
  check_close(gradient_of([&](const Tensor& x) { return keep_where(x, keep); }, x, dy), Tensor{2, 0, 0});
  check_close(gradient_of([&](const Tensor& x) { return masked_fill(x, !keep, 0); }, x, dy), Tensor{2, 0, 0});
  check_close(gradient_of([&](const Tensor& x) { return where(keep, x, Tensor(0)); }, x, dy), Tensor{2, 0, 0});
  check_close(gradient_of([&](const Tensor& x) { return masked_select(x, keep); }, x), Tensor{1, 0, 0});
}
