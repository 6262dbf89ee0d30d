#include <sys/time.h>

#include <csignal>

#include "autograd/random.hpp"
#include "autograd/threads.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

constexpr Transpose no = Transpose::no;
constexpr Transpose yes = Transpose::yes;

/// op(a) op(b) of two matrices by three loops.
Array plain_product(const Array& a, const Array& b, Transpose ta, Transpose tb) {
  const std::size_t m = a.shape()[ta == yes ? 1 : 0];
  const std::size_t k = a.shape()[ta == yes ? 0 : 1];
  const std::size_t n = b.shape()[tb == yes ? 0 : 1];
  Array y(Shape{m, n}, Real(0));
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l) {
        sum += static_cast<double>(ta == yes ? a(l, i) : a(i, l)) * (tb == yes ? b(j, l) : b(l, j));
      }
      y(i, j) = static_cast<Real>(sum);
    }
  }
  return y;
}

Shape maybe_swapped(Shape shape, Transpose t) {
  if (t == yes) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

}  // namespace

TEST_CASE("products of matrices of all kinds of sizes, transposed or not") {
  Rng rng(1);
  const std::size_t sizes[][3] = {{1, 1, 1}, {2, 3, 4},   {5, 7, 1},    {1, 9, 6},     {3, 1, 3},
                                  {9, 9, 9}, {17, 33, 1}, {40, 50, 30}, {700, 90, 80}, {80, 90, 700}};
  for (const auto& [m, k, n] : sizes) {
    for (Transpose ta : {no, yes}) {
      for (Transpose tb : {no, yes}) {
        CAPTURE(m, k, n, ta, tb);
        const Tensor a(rng.normal(maybe_swapped({m, k}, ta)));
        const Tensor b(rng.normal(maybe_swapped({k, n}, tb)));
        check_close(matmul(a, b, ta, tb).value(), plain_product(a.value(), b.value(), ta, tb), 20 * kTight);
        if (m * k < 30) check_gradients([=](const auto& xs) { return matmul(xs[0], xs[1], ta, tb); }, {a, b});
      }
    }
  }
}

TEST_CASE("batches broadcast, and gradients are summed over what was repeated") {
  Rng rng(2);
  const Shape shapes[][2] = {{{2, 3, 4}, {2, 4, 2}}, {{2, 3, 4}, {4, 2}},          {{3, 4}, {2, 4, 2}},
                             {{1, 3, 4}, {2, 4, 2}}, {{2, 1, 3, 4}, {3, 4, 2}},    {{2, 1, 2, 3}, {1, 3, 3, 1}},
                             {{2, 3, 4}, {1, 4, 2}}, {{2, 2, 2, 3}, {2, 1, 3, 2}}, {{1, 1, 1}, {2, 1, 1}}};
  for (const auto& [a_shape, b_shape] : shapes) {
    for (Transpose ta : {no, yes}) {
      for (Transpose tb : {no, yes}) {
        CAPTURE(to_text(a_shape), to_text(b_shape), ta, tb);
        const Tensor a(rng.normal(maybe_swapped(a_shape, ta)));
        const Tensor b(rng.normal(maybe_swapped(b_shape, tb)));
        check_gradients([=](const auto& xs) { return matmul(xs[0], xs[1], ta, tb); }, {a, b});
      }
    }
  }
  const Tensor a(rng.normal({2, 3, 4}));
  const Tensor b(rng.normal({5, 1, 4, 2}));
  const Tensor y = matmul(a, b);
  CHECK(to_text(y.shape()) == "(5,2,3,2)");
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t column = 0; column < 2; ++column) {
          double sum = 0;
          for (std::size_t l = 0; l < 4; ++l) sum += double(a.value()(j, row, l)) * b.value()(i, 0, l, column);
          CHECK(y.value()(i, j, row, column) == Approx(sum).margin(1e-5));
        }
      }
    }
  }
}

TEST_CASE("bmm of equal batches") {
  Rng rng(3);
  for (Transpose ta : {no, yes}) {
    for (Transpose tb : {no, yes}) {
      const Tensor a(rng.normal(maybe_swapped({3, 2, 4}, ta)));
      const Tensor b(rng.normal(maybe_swapped({3, 4, 2}, tb)));
      check_gradients([=](const auto& xs) { return bmm(xs[0], xs[1], ta, tb); }, {a, b});
      check_close(bmm(a, b, ta, tb), matmul(a, b, ta, tb));
    }
  }
}

TEST_CASE("an inner extent of 0 gives zeros and empty gradients") {
  const Tensor a(Array(Shape{2, 2, 0}));
  const Tensor b(Array(Shape{2, 0, 3}));
  check_close(bmm(a, b).value(), Array(Shape{2, 2, 3}, Real(0)));
  check_close(matmul(a, b).value(), Array(Shape{2, 2, 3}, Real(0)));
  const auto gradients = gradients_of([](const auto& xs) { return bmm(xs[0], xs[1]); }, {a, b});
  CHECK(to_text(gradients[0].shape()) == "(2,2,0)");
  CHECK(to_text(gradients[1].shape()) == "(2,0,3)");
  check_close(matmul(Tensor(Array(Shape{0, 3})), Tensor(Array(Shape{3, 2}, Real(1)))).value(), Array(Shape{0, 2}));
  // No rows: the other factor's gradient is a sum of nothing.
  const auto empty = gradients_of([](const auto& xs) { return matmul(xs[0], xs[1]); },
                                  {Tensor(Array(Shape{0, 3})), Tensor(Array(Shape{3, 2}, Real(1)))});
  check_close(empty[1].value(), Array(Shape{3, 2}, Real(0)));
  const auto no_batch = gradients_of([](const auto& xs) { return matmul(xs[0], xs[1]); },
                                     {Tensor(Array(Shape{0, 2, 3})), Tensor(Array(Shape{3, 2}, Real(1)))});
  check_close(no_batch[1].value(), Array(Shape{3, 2}, Real(0)));
}

TEST_CASE("the product of a range of columns with itself") {
  const Tensor x{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}};
  const Tensor v = slice(x, 1, 1, 3);
  check_close(matmul(v, v, yes, no), Tensor{{140, 158}, {158, 179}});
}

TEST_CASE("1-D factors are a row on the left and a column on the right") {
  Rng rng(4);
  const Shape shapes[][3] = {{{3}, {3}, {}},           {{3}, {3, 2}, {2}},       {{2, 3}, {3}, {2}},
                             {{3}, {4, 3, 2}, {4, 2}}, {{4, 2, 3}, {3}, {4, 2}}, {{1}, {1}, {}}};
  for (const auto& [a_shape, b_shape, y_shape] : shapes) {
    CAPTURE(to_text(a_shape), to_text(b_shape));
    const Tensor a(rng.normal(a_shape));
    const Tensor b(rng.normal(b_shape));
    CHECK(to_text(matmul(a, b).shape()) == to_text(y_shape));
    check_gradients([](const auto& xs) { return matmul(xs[0], xs[1]); }, {a, b});
  }
  check_close(matmul(Tensor{1, 2, 3}, Tensor{4, 5, 6}), Tensor(32));
}

TEST_CASE("linear is x weight^T + bias") {
  const Tensor w{{1, 2, 3}, {0, -1, 1}};
  const Tensor b{10, 20};
  check_close(linear(Tensor{1, 1, 1}, w, b), Tensor{16, 20});
  check_close(linear(Tensor{{1, 1, 1}, {0, 0, 2}}, w), Tensor{{6, 0}, {6, 2}});
  Rng rng(5);
  for (const Shape& shape : {Shape{3}, Shape{4, 3}, Shape{2, 2, 3}}) {
    const Tensor x(rng.normal(shape));
    check_gradients([](const auto& xs) { return linear(xs[0], xs[1], xs[2]); }, {x, w, b});
    check_gradients([](const auto& xs) { return linear(xs[0], xs[1]); }, {x, w});
  }
  const auto empty =
      gradients_of([](const auto& xs) { return linear(xs[0], xs[1], xs[2]); }, {Tensor(Array(Shape{0, 3})), w, b});
  check_close(empty[2], Tensor{0, 0});
}

TEST_CASE("factors that don't fit are refused") {
  const Tensor a(Array(Shape{2, 3, 4}, Real(0)));
  const Tensor b(Array(Shape{2, 5, 6}, Real(0)));
  check_refused([&] { bmm(a, b); }, "[bmm] a's last axis must equal b's middle axis");
  check_refused([&] { bmm(a, b); }, "got (2,3,4) and (2,5,6)");
  check_refused([&] { bmm(a, Tensor(Array(Shape{3, 4, 6}, Real(0)))); }, "[bmm] a and b must be 3-D");
  check_refused([&] { matmul(a, b); }, "[matmul] the inner extents of a and b must be equal; got (2,3,4) and (2,5,6)");
  check_refused([&] { matmul(a, Tensor(Array(Shape{3, 4, 6}, Real(0)))); }, "[matmul] ");
  check_refused([&] { matmul(Tensor(1), a); }, "[matmul] the factors must have an axis");
  check_refused([&] { matmul(Tensor{1, 2}, Tensor{1, 2}, yes); }, "[matmul] a 1-D factor can't be transposed");
  check_refused([&] { matmul(Tensor{1, 2}, Tensor{1, 2, 3}); }, "[matmul] ");
  check_refused([&] { linear(Tensor{1, 2}, Tensor{{1, 2, 3}}); }, "[linear] x's last axis must equal");
  check_refused([&] { linear(Tensor{1, 2}, Tensor{{1, 2}}, Tensor{1, 2}); }, "[linear] the bias must be 1-D");
}

TEST_CASE("products are the same bits for any number of threads", "[matmul][threads]") {
  Rng rng(3);
  const Tensor a = rng.normal({600, 130});
  const Tensor b = rng.normal({130, 200});
  const Tensor stack = rng.normal({64, 40, 50});
  const int before = threads();
  set_threads(1);
  const Tensor one = matmul(a, b);
  const Tensor one_transposed = matmul(b, a, Transpose::yes, Transpose::yes);
  const Tensor one_batch = bmm(stack, stack, Transpose::no, Transpose::yes);
  set_threads(2);
  CHECK(matmul(a, b).value() == one.value());
  CHECK(matmul(b, a, Transpose::yes, Transpose::yes).value() == one_transposed.value());
  CHECK(bmm(stack, stack, Transpose::no, Transpose::yes).value() == one_batch.value());
  set_threads(before);
}

TEST_CASE("signals that arrive during a product leave the heap whole", "[matmul]") {
  static volatile std::sig_atomic_t signals = 0;
  struct sigaction count = {}, before = {};
  count.sa_handler = [](int) { signals = signals + 1; };
  count.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &count, &before);
  const itimerval every_50_us = {{0, 50}, {0, 50}};
  const itimerval never = {};
  Rng rng(0);
  const Tensor a = rng.normal({200, 200});
  const Tensor b = rng.normal({200, 200});
  const Tensor expected = matmul(a, b);
  setitimer(ITIMER_REAL, &every_50_us, nullptr);
  int wrong = 0;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string neighbour(1000 + i, ' ');  // what a signal's frame on the heap would overwrite
    wrong += matmul(a, b).value() != expected.value();
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  CHECK(wrong == 0);
  CHECK(signals > 0);
}
