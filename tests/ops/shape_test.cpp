#include "tests/check.hpp"

using namespace tapegrad;

namespace {

using Inputs = std::vector<Tensor>;

/// 1, 2, ... in that shape.
Tensor counted(const Shape& shape) { return reshape(arange(element_count(shape)), shape) + 1; }

/// Elements that all differ, for gradient checks.
Tensor uneven(const Shape& shape) { return sin(counted(shape) * Real(1.7)); }

/// x cubed, so that second derivatives are not zero.
Tensor cubed(const Tensor& x) { return x * x * x; }

/// First and second order of f, followed by something that is not linear.
template <class F>
void check_linear_op(F f, const Shape& shape) {
  check_gradients([&](const Inputs& x) { return cubed(f(x[0])) + square(f(cubed(x[0]))); }, {uneven(shape)});
}

}  // namespace

TEST_CASE("reshape keeps the elements", "[shape]") {
  check_close(reshape(Tensor{{1, 2, 3}, {4, 5, 6}}, {3, 2}), Tensor{{1, 2}, {3, 4}, {5, 6}});
  check_close(reshape(counted({2, 6}), {2, -1, 3}), counted({2, 2, 3}));
  CHECK(reshape(counted({1}), {}).rank() == 0);
  CHECK(reshape(Tensor(3), {-1}).shape() == Shape{1});
  CHECK(reshape(Tensor(3), {1, 1}).item() == 3);
  CHECK(reshape(zeros({0, 3}), {-1}).shape() == Shape{0});
  CHECK(reshape(zeros({0, 3}), {-1, 3}).shape() == Shape{0, 3});
  CHECK(reshape(zeros({0, 3}), {5, 0}).shape() == Shape{5, 0});
  const std::size_t n = 4;
  CHECK(reshape(counted({4, 2}), {n, -1}).shape() == Shape{4, 2});
  CHECK(reshape(counted({4, 2}), std::vector<std::ptrdiff_t>{-1, 8}).shape() == Shape{1, 8});
  check_linear_op([](const Tensor& x) { return reshape(x, {3, -1}); }, {2, 3, 2});
  check_linear_op([](const Tensor& x) { return reshape(x, {}); }, {1, 1});
}

TEST_CASE("reshape refuses another number of elements", "[shape]") {
  const Tensor x = counted({2, 6});
  check_refused(
      [&] {
        reshape(x, {5, 2});
      },
      "[reshape] the shapes must hold equally many elements; got (2,6) to (5,2)");
  check_refused([&] { reshape(x, {5, -1}); }, "[reshape]");
  check_refused([&] { reshape(x, {-1, -1}); }, "[reshape]");
  check_refused([&] { reshape(x, {-2, -6}); }, "(2,6) to (-2,-6)");
  check_refused([&] { reshape(x, {}); }, "(2,6) to ()");
  check_refused([&] { reshape(zeros({0, 3}), {-1, 0}); }, "[reshape] -1 can't be found beside an extent of 0");
  const std::size_t huge = std::size_t{1} << 62;
  check_refused([&] { reshape(zeros({0}), {huge, huge}); }, "[reshape]");
  check_refused([&] { reshape(x, {huge, 4, 12}); }, "[reshape]");
}

TEST_CASE("permute moves axes", "[shape]") {
  check_close(permute(Tensor{{1, 2, 3}, {4, 5, 6}}, {1, 0}), Tensor{{1, 4}, {2, 5}, {3, 6}});
  const Tensor x = counted({2, 3, 2});  // x[i,j,k] = 6 i + 2 j + k + 1
  check_close(permute(x, {2, 0, 1}), Tensor{{{1, 3, 5}, {7, 9, 11}}, {{2, 4, 6}, {8, 10, 12}}});
  check_close(permute(x, {1, 0, 2}), Tensor{{{1, 2}, {7, 8}}, {{3, 4}, {9, 10}}, {{5, 6}, {11, 12}}});
  check_close(permute(x, {-1, -3, -2}), permute(x, {2, 0, 1}));
  check_close(permute(x, {0, 1, 2}), x);
  check_close(transpose(x, 0, -1), permute(x, {2, 1, 0}));
  CHECK(permute(Tensor(7), std::vector<int>{}).item() == 7);
  CHECK(permute(zeros({0, 3, 2}), {2, 0, 1}).shape() == Shape{2, 0, 3});
  CHECK(permute(zeros({1, 1}), {1, 0}).shape() == Shape{1, 1});
}

TEST_CASE("permute agrees with the definition in every order of the axes", "[shape]") {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 40, 1, 37}, Shape{3, 1, 2, 1}}) {
    const Tensor x = counted(shape);
    std::vector<int> axes = {0, 1, 2, 3};
    do {
      const Array y = permute(x, axes).value();
      std::vector<std::size_t> at(4), from(4);
      bool same = true;
      for (std::size_t n = 0; n < y.size(); ++n) {
        std::size_t rest = n;
        for (std::size_t i = 4; i-- > 0; rest /= y.shape()[i]) at[i] = rest % y.shape()[i];
        for (std::size_t i = 0; i < 4; ++i) from[static_cast<std::size_t>(axes[i])] = at[i];
        std::size_t source = 0;
        for (std::size_t i = 0; i < 4; ++i) source = source * shape[i] + from[i];
        same = same && y.data()[n] == x.value().data()[source];
      }
      CAPTURE(axes);
      CHECK(same);
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
  const Tensor deep = counted({2, 1, 2, 2, 1, 2, 2, 2});
  const Tensor turned = permute(deep, {7, 6, 5, 4, 3, 2, 1, 0});
  check_close(permute(turned, {7, 6, 5, 4, 3, 2, 1, 0}), deep);
  CHECK(turned.value()(1, 0, 0, 0, 0, 0, 0, 0) == 2);
}

TEST_CASE("permute's gradient goes back, and wrong axes are refused", "[shape]") {
  check_linear_op([](const Tensor& x) { return permute(x, {2, 0, 1}); }, {2, 3, 2});
  check_linear_op([](const Tensor& x) { return transpose(x, 0, 1); }, {2, 3});
  const Tensor x = counted({2, 3});
  check_refused([&] { permute(x, {0}); }, "[permute] each axis must be listed; got 1 and (2,3)");
  check_refused([&] { permute(x, {0, -2}); }, "[permute] an axis may be listed once");
  check_refused([&] { permute(x, {0, 2}); }, "[permute] the axis must be at least -rank and below the rank");
  check_refused([&] { transpose(x, 0, 2); }, "[transpose]");
  check_refused([&] { transpose(Tensor(1), 0, 0); }, "[transpose]");
  check_refused([&] { transpose(zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}), 0, 1); }, "at most 8 axes");
}

TEST_CASE("unsqueeze and squeeze add and drop an axis of extent 1", "[shape]") {
  const Tensor x = counted({2, 3});
  CHECK(unsqueeze(x, 0).shape() == Shape{1, 2, 3});
  CHECK(unsqueeze(x, -1).shape() == Shape{2, 3, 1});
  CHECK(unsqueeze(x, 1).shape() == Shape{2, 1, 3});
  CHECK(unsqueeze(Tensor(1), 0).shape() == Shape{1});
  CHECK(squeeze(unsqueeze(x, 1), -2).shape() == Shape{2, 3});
  CHECK(squeeze(Tensor{4}, 0).rank() == 0);
  check_linear_op([](const Tensor& x) { return squeeze(unsqueeze(x, 1) * Real(2), 1); }, {2, 3});
  check_refused([&] { squeeze(x, 0); }, "[squeeze] the axis must have extent 1; got 0 and (2,3)");
  check_refused([&] { squeeze(Tensor(1), 0); }, "[squeeze]");
  check_refused([&] { unsqueeze(x, 3); }, "[unsqueeze]");
  check_refused([&] { unsqueeze(x, -4); }, "[unsqueeze]");
}

TEST_CASE("broadcast_to repeats, and its gradient sums", "[shape]") {
  check_close(broadcast_to(Tensor{{1}, {2}}, {2, 2, 3}), Tensor{{{1, 1, 1}, {2, 2, 2}}, {{1, 1, 1}, {2, 2, 2}}});
  CHECK(broadcast_to(Tensor(1), {0, 2}).shape() == Shape{0, 2});
  check_linear_op([](const Tensor& x) { return broadcast_to(x, {2, 2, 3}); }, {2, 1});
  check_refused([&] { broadcast_to(counted({2}), {3}); }, "[broadcast_to]");
  check_refused(
      [&] {
        broadcast_to(Tensor(1), {std::size_t{1} << 40, std::size_t{1} << 40});
      },
      "[broadcast_to] the array would be too large");
}

TEST_CASE("adding in place to a broadcast Tensor adds once", "[shape]") {
  Tensor x = broadcast_to(ones({1, 1}), {4, 5});
  x += 1;
  check_close(x, full({4, 5}, 2));
  Tensor y = broadcast_to(ones({1, 1}), {4, 5});
  y += ones({4, 5});
  check_close(y, full({4, 5}, 2));
}

TEST_CASE("repeat tiles", "[shape]") {
  check_close(repeat(Tensor{{1, 2}, {3, 4}}, {1, 2}), Tensor{{1, 2, 1, 2}, {3, 4, 3, 4}});
  check_close(repeat(Tensor{{1, 2}, {3, 4}}, {2, 1}), Tensor{{1, 2}, {3, 4}, {1, 2}, {3, 4}});
  check_close(repeat(Tensor{1, 2}, {2, 2}), Tensor{{1, 2, 1, 2}, {1, 2, 1, 2}});
  check_close(repeat(Tensor(5), {3}), Tensor{5, 5, 5});
  CHECK(repeat(Tensor(5), {}).rank() == 0);
  CHECK(repeat(counted({2, 3}), {2, 0}).shape() == Shape{4, 0});
  CHECK(repeat(zeros({0, 3}), {2, 2}).shape() == Shape{0, 6});
  CHECK(repeat(counted({1, 1, 2, 1, 1, 1, 1, 1}), {2, 2, 2, 2, 2, 2, 2, 2}).size() == 512);
  check_linear_op([](const Tensor& x) { return repeat(x, {2, 1, 3}); }, {2, 2});
  check_refused(
      [&] {
        repeat(counted({2, 3}), {2});
      },
      "[repeat] there must be at least as many repeats as axes; got 1");
  const std::size_t huge = std::size_t{1} << 61;
  check_refused([&] { repeat(counted({8}), {huge}); }, "[repeat] the array would be too large");
  check_refused([&] { repeat(zeros({0}), {huge, huge}); }, "[repeat]");
}

TEST_CASE("repeat's gradient has x's shape where repeats add axes", "[shape]") {
  const Tensor dx = gradient_of([](const Tensor& x) { return repeat(x, {3, 2, 1, 1, 1}); }, counted({2, 3, 4}));
  check_close(dx, full({2, 3, 4}, 6));
  const Tensor none = gradient_of([](const Tensor& x) { return repeat(x, {0, 1}); }, counted({2}));
  check_close(none, zeros({2}));
}

TEST_CASE("repeat_interleave repeats each element in place", "[shape]") {
  check_close(repeat_interleave(Tensor{1, 2}, 2, 0), Tensor{1, 1, 2, 2});
  check_close(repeat_interleave(Tensor{{1, 2}, {3, 4}}, 2, 0), Tensor{{1, 2}, {1, 2}, {3, 4}, {3, 4}});
  check_close(repeat_interleave(Tensor{{1, 2}, {3, 4}}, 2, -1), Tensor{{1, 1, 2, 2}, {3, 3, 4, 4}});
  check_close(repeat_interleave(Tensor{{1, 2}, {3, 4}}, 2), Tensor{1, 1, 2, 2, 3, 3, 4, 4});
  check_close(repeat_interleave(Tensor(1), 2), Tensor{1, 1});
  CHECK(repeat_interleave(counted({2, 3}), 0, 1).shape() == Shape{2, 0});
  CHECK(repeat_interleave(zeros({2, 0}), 3, 0).shape() == Shape{6, 0});
  check_linear_op([](const Tensor& x) { return repeat_interleave(x, 3, 0); }, {2, 2});
  check_linear_op([](const Tensor& x) { return repeat_interleave(x, 2); }, {2, 2});
  check_refused([&] { repeat_interleave(Tensor(1), 2, 0); }, "[repeat_interleave]");
  check_refused([&] { repeat_interleave(counted({2}), std::size_t{1} << 63, 0); }, "[repeat_interleave]");
}

TEST_CASE("concat puts arrays behind each other", "[shape]") {
  const Tensor a{{1, 2}, {3, 4}};
  const Tensor b{{5}, {6}};
  check_close(concat({a, b}, 1), Tensor{{1, 2, 5}, {3, 4, 6}});
  check_close(concat({a, b}, -1), Tensor{{1, 2, 5}, {3, 4, 6}});
  check_close(concat({a, Tensor{{7, 8}}}, 0), Tensor{{1, 2}, {3, 4}, {7, 8}});
  check_close(concat({a}, 0), a);
  check_close(concat({zeros({0, 2}), a, zeros({0, 2})}, 0), a);
  CHECK(concat({zeros({2, 0}), zeros({2, 0})}, 1).shape() == Shape{2, 0});
  check_gradients(
      [](const Inputs& x) {
        return cubed(concat({x[0], x[1], square(x[0])}, 1));
      },
      {uneven({2, 2}), uneven({2, 3})});
  check_refused([&] { concat({}, 0); }, "[concat] there must be a Tensor");
  check_refused([&] { concat({a, b}, 0); }, "[concat] the shapes must be equal but for the axis; got (2,2) and (2,1)");
  check_refused([&] { concat({a, Tensor{1, 2}}, 0); }, "[concat]");
  check_refused([&] { concat({Tensor(1), Tensor(2)}, 0); }, "[concat]");
  check_refused([&] { concat({a, Tensor()}, 0); }, "undefined");
}

TEST_CASE("concat gives constants no gradient, and one Tensor twice both parts", "[shape]") {
  const Tensor x = gradient_of(
      [](const Tensor& x) {
        return concat({Tensor{9, 9}, x, Tensor{9}, x}, 0);
      },
      Tensor{1, 2}, Tensor{1, 2, 3, 4, 5, 6, 7});
  check_close(x, Tensor{9, 11});
}

TEST_CASE("stack puts arrays along a new axis", "[shape]") {
  check_close(stack({Tensor{1, 2}, Tensor{3, 4}}, 0), Tensor{{1, 2}, {3, 4}});
  check_close(stack({Tensor{1, 2}, Tensor{3, 4}}, -1), Tensor{{1, 3}, {2, 4}});
  check_close(stack({Tensor(1), Tensor(2)}, 0), Tensor{1, 2});
  check_gradients([](const Inputs& x) { return cubed(stack({x[0], x[1]}, 1)); }, {uneven({2, 2}), uneven({2, 2})});
  check_refused([&] { stack({}, 0); }, "[stack] there must be a Tensor");
  check_refused([&] { stack({Tensor{1}, Tensor{1, 2}}, 0); }, "[stack] the shapes must be equal; got (1) and (2)");
  check_refused([&] { stack({Tensor{1}}, 2); }, "[stack]");
}

TEST_CASE("slice takes what Python takes", "[shape]") {
  const Tensor x = arange(std::size_t{6});
  check_close(slice(x, 0, 1, 4), Tensor{1, 2, 3});
  check_close(slice(x, 0, 0, 6, 2), Tensor{0, 2, 4});
  check_close(slice(x, 0, 1, 6, 3), Tensor{1, 4});
  check_close(slice(x, 0, -2, 100), Tensor{4, 5});
  check_close(slice(x, 0, -100, -4), Tensor{0, 1});
  CHECK(slice(x, 0, 4, 2).shape() == Shape{0});
  CHECK(slice(x, 0, 100, 200).shape() == Shape{0});
  CHECK(slice(zeros({0, 2}), 0, 0, 1).shape() == Shape{0, 2});
  check_close(slice(x, 0, PTRDIFF_MIN, PTRDIFF_MAX, PTRDIFF_MAX), Tensor{0});
  check_close(slice(Tensor{{1, 2, 3}, {4, 5, 6}}, 1, 0, 3, 2), Tensor{{1, 3}, {4, 6}});
  check_close(slice(Tensor{{1, 2, 3}, {4, 5, 6}}, -2, 1, 2), Tensor{{4, 5, 6}});
  check_linear_op([](const Tensor& x) { return slice(x, 1, 1, 5, 2); }, {2, 5, 2});
  check_linear_op([](const Tensor& x) { return slice(x, 0, -2, 100); }, {3, 2});
  check_refused([&] { slice(x, 0, 0, 2, 0); }, "[slice] the step must be at least 1; got 0");
  check_refused([&] { slice(x, 0, 4, 0, -1); }, "[slice]");
  check_refused([&] { slice(x, 1, 0, 2); }, "[slice]");
  check_refused([&] { slice(Tensor(1), 0, 0, 1); }, "[slice]");
}

TEST_CASE("gradients of several slices add up", "[shape]") {
  const auto f = [](const Tensor& x) {
    return concat({slice(x, 0, 0, 3), slice(x, 0, 1, 2), slice(x, 0, 0, 4, 2), slice(x, 0, 2, 2)}, 0);
  };
  check_close(gradient_of(f, Tensor{1, 2, 3, 4}), Tensor{2, 2, 2, 0});
}

TEST_CASE("unslice puts back, with zeros elsewhere", "[shape]") {
  check_close(unslice(Tensor{1, 2}, 0, 1, 6, 3, {6}), Tensor{0, 1, 0, 0, 2, 0});
  check_close(unslice(Tensor{{1, 2}}, 0, -1, 9, 1, {3, 2}), Tensor{{0, 0}, {0, 0}, {1, 2}});
  check_close(unslice(zeros({0}), 0, 2, 2, 1, {3}), zeros({3}));
  check_linear_op([](const Tensor& x) { return unslice(x, 1, 0, 3, 2, {2, 3}); }, {2, 2});
  check_refused(
      [&] {
        unslice(Tensor{1, 2}, 0, 0, 3, 1, {6});
      },
      "[unslice] x must have the shape that slice would give");
  check_refused([&] { unslice(Tensor{1, 2}, 0, 0, 3, 0, {6}); }, "[unslice]");
  check_refused([&] { unslice(Tensor(1), 0, 0, 1, 1, {}); }, "[unslice]");
}

TEST_CASE("tril and triu keep one side of a diagonal", "[shape]") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}};
  check_close(tril(x), Tensor{{1, 0, 0}, {4, 5, 0}});
  check_close(triu(x), Tensor{{1, 2, 3}, {0, 5, 6}});
  check_close(tril(x, 1), Tensor{{1, 2, 0}, {4, 5, 6}});
  check_close(tril(x, -1), Tensor{{0, 0, 0}, {4, 0, 0}});
  check_close(triu(x, 1), Tensor{{0, 2, 3}, {0, 0, 6}});
  check_close(triu(x, -1), x);
  check_close(tril(x, std::numeric_limits<int>::max()), x);
  check_close(tril(x, std::numeric_limits<int>::min()), zeros({2, 3}));
  check_close(triu(x, std::numeric_limits<int>::max()), zeros({2, 3}));
  check_close(tril(broadcast_to(x, {2, 2, 3})), broadcast_to(tril(x), {2, 2, 3}));
  check_close(tril(full({2, 2}, kNaN), -2), zeros({2, 2}));
  CHECK(tril(zeros({0, 3})).shape() == Shape{0, 3});
  CHECK(triu(zeros({3, 0})).shape() == Shape{3, 0});
  check_linear_op([](const Tensor& x) { return tril(x); }, {2, 3, 3});
  check_linear_op([](const Tensor& x) { return triu(x, -1); }, {3, 2});
  check_refused([&] { tril(Tensor{1, 2}); }, "[tril] there must be two axes at least; got (2)");
  check_refused([&] { triu(Tensor(1)); }, "[triu]");
}

TEST_CASE("a gradient may be asked for at an op's output", "[shape]") {
  // The rule of that op has nothing to do then: nobody wants its operand's gradient.
  Tensor x = counted({2, 3});
  x.set_requires_grad();
  for (const bool create_graph : {false, true}) {
    Tape tape;
    const Tensor flat = reshape(slice(x, 1, 0, 2), {-1});
    const Tensor loss = sum(square(flat));
    BackwardOptions options;
    options.keep = true;
    options.create_graph = create_graph;
    check_close(tape.gradient(loss, {flat}, options)[0], flat * Real(2));
    const std::vector<Tensor> both = tape.gradient(loss, {flat, x}, options);
    check_close(both[0], Tensor{2, 4, 8, 10});
    check_close(both[1], Tensor{{2, 4, 0}, {8, 10, 0}});
  }
}
