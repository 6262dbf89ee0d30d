#include "autograd/random.hpp"
#include "autograd/threads.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

/// softmax or its logarithm by the plain formula, in long double; along the last axis.
Array plain_softmax(const Array& x, bool logarithm) {
  Array y = x;
  const std::size_t n = x.shape().back();
  for (std::size_t row = 0; row < x.size(); row += n) {
    const Real* in = x.data() + row;
    long double top = -std::numeric_limits<long double>::infinity();
    for (std::size_t i = 0; i < n; ++i) top = in[i] > top || in[i] != in[i] ? in[i] : top;
    long double total = 0;
    for (std::size_t i = 0; i < n; ++i) total += std::exp(in[i] - top);
    for (std::size_t i = 0; i < n; ++i) {
      y.data()[row + i] = static_cast<Real>(logarithm ? in[i] - top - std::log(total) : std::exp(in[i] - top) / total);
    }
  }
  return y;
}

constexpr double kRow = kDouble ? 1e-14 : 1e-6;

}  // namespace

TEST_CASE("softmax and log_softmax are the plain formula for every row length, aligned or not") {
  Rng rng(1);
  for (std::size_t n = 1; n <= 70; ++n) {
    const Tensor x(rng.normal({3, n}, 0, 4));  // rows 1 and 2 start wherever n leaves them
    check_close(softmax(x, -1), Tensor(plain_softmax(x.value(), false)), kRow);
    check_close(log_softmax(x, 1), Tensor(plain_softmax(x.value(), true)), 4 * kRow);
  }
}

TEST_CASE("NaN and infinities in a softmax row come out as the formula says, wherever they stand") {
  Rng rng(2);
  for (std::size_t n : {1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 70}) {
    for (std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      for (Real special : {kNaN, kInf, -kInf}) {
        Array x = rng.normal({2, n});
        x(1, at) = special;
        CAPTURE(n, at, special);
        check_close(softmax(Tensor(x), 1).value(), plain_softmax(x, false), kRow);
        check_close(log_softmax(Tensor(x), 1).value(), plain_softmax(x, true), 4 * kRow);
      }
    }
  }
  const Tensor none{-kInf, -kInf, -kInf};  // nothing to choose from: the plain softmax is NaN
  check_close(softmax(none, 0), Tensor{kNaN, kNaN, kNaN});
  check_close(softmax(Tensor{kInf, 1}, 0), Tensor{kNaN, kNaN});
}

TEST_CASE("softmax of huge scores neither overflows nor loses its gradient") {
  check_close(softmax(Tensor{1e4, 1e4, -1e4}, 0), Tensor{0.5, 0.5, 0});
  check_close(softmax(Tensor{-1e4, -1e4 - 1}, 0), Tensor{1 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(1.0))});
  check_close(log_softmax(Tensor{1e4, 0}, 0), Tensor{0, -1e4});
  check_close(gradient_of([](const Tensor& x) { return softmax(x, 0); }, Tensor{1e4, 1e4}, Tensor{1, 0}),
              Tensor{0.25, -0.25});
}

TEST_CASE("log_softmax of a vanished probability is the difference of the scores, with gradient") {
  const Tensor x{1000, 0};
  check_close(log_softmax(x, 0), Tensor{0, -1000});
  check_close(gradient_of([](const Tensor& v) { return log_softmax(v, 0); }, x, Tensor{0, 1}), Tensor{-1, 1});
}

TEST_CASE("softmax and log_softmax differentiate twice along every axis") {
  Rng rng(3);
  for (const Shape& shape : {Shape{1}, Shape{5}, Shape{2, 3}, Shape{3, 1}, Shape{2, 3, 4}}) {
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
      CAPTURE(to_text(shape), axis);
      const Tensor x(rng.normal(shape));
      if (shape[static_cast<std::size_t>(axis)] > 1) {
        check_gradients([=](const auto& xs) { return softmax(xs[0], axis); }, {x});
      }
      check_gradients([=](const auto& xs) { return square(log_softmax(xs[0], axis)); }, {x});
    }
  }
  check_close(softmax(Tensor(Array(Shape{0, 3})), 1), Tensor(Array(Shape{0, 3})));
  check_close(softmax(Tensor(Array(Shape{3, 0})), 1), Tensor(Array(Shape{3, 0})));
  check_close(log_softmax(Tensor(Array(Shape{3, 0})), 1), Tensor(Array(Shape{3, 0})));
}

TEST_CASE("a softmax along an inner axis is that of the rows") {
  Rng rng(4);
  const Array x = rng.normal({2, 5, 3});
  const Array y = softmax(Tensor(x), 1).value();
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t c = 0; c < 3; ++c) {
      Array column(Shape{5});
      Array expected(Shape{5});
      for (std::size_t i = 0; i < 5; ++i) column(i) = x(b, i, c), expected(i) = y(b, i, c);
      check_close(expected, plain_softmax(column, false), kRow);
    }
  }
}

TEST_CASE("running sums from either end") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}};
  check_close(cumsum(x, 1), Tensor{{1, 3, 6}, {4, 9, 15}});
  check_close(cumsum(x, 1, true), Tensor{{6, 5, 3}, {15, 11, 6}});
  check_close(cumsum(x, 0), Tensor{{1, 2, 3}, {5, 7, 9}});
  check_close(cumsum(x, -2, true), Tensor{{5, 7, 9}, {4, 5, 6}});
  check_close(cumsum(Tensor(Array(Shape{0})), 0), Tensor(Array(Shape{0})));
  for (int axis : {0, 1}) {
    for (bool reverse : {false, true}) {
      check_gradients([=](const auto& xs) { return square(cumsum(xs[0], axis, reverse)); }, {x});
    }
  }
}

TEST_CASE("an axis that is not there is refused in the op's name") {
  const Tensor x{{1, 2}};
  check_refused([&] { softmax(x, 2); }, "[softmax] ");
  check_refused([&] { log_softmax(x, -3); }, "[log_softmax] ");
  check_refused([&] { cumsum(x, 5); }, "[cumsum] ");
  check_refused([&] { softmax(Tensor(1), 0); }, "[softmax] ");
}

TEST_CASE("an empty array is done at once, however long its other axes") {
  const std::size_t huge = std::size_t{1} << 40;
  const Tensor x = zeros({huge, 0});
  CHECK(softmax(x, 1).shape() == Shape{huge, 0});
  CHECK(log_softmax(x, 1).shape() == Shape{huge, 0});
  CHECK(cumsum(x, 1).shape() == Shape{huge, 0});
  CHECK(gradient_of([](const Tensor& v) { return softmax(v, 1); }, x).shape() == Shape{huge, 0});
}

TEST_CASE("large rows, broadcasts and sums have the same bits on any number of threads") {
  Rng rng(0);
  const Tensor x = rng.normal({700, 300});
  const Tensor row = rng.normal({300});
  const Tensor column = rng.normal({700, 1});
  const auto f = [](const std::vector<Tensor>& xs) {
    return gelu(softmax(xs[0] * xs[1], -1) * xs[2]) + linear(xs[0], ones({300, 300}), xs[1]);
  };
  const int before = threads();
  const auto all_with = [&](int count) {
    set_threads(count);
    std::vector<Tensor> result = gradients_of(f, {x, row, column}, x);
    result.push_back(f({x, row, column}));
    return result;
  };
  const std::vector<Tensor> one = all_with(1);
  const std::vector<Tensor> three = all_with(3);
  set_threads(before);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].value() == three[i].value());
}
