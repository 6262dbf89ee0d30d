#include "autograd/random.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

struct Sizes {
  std::size_t batch, channels, length, outputs, kernel;
  std::ptrdiff_t stride, padding;
};

/// The definition, as five loops.
Array plain_conv1d(const Array& x, const Array& weight, const Array& bias, const Sizes& s) {
  const auto length = static_cast<std::ptrdiff_t>(s.length);
  const auto kernel = static_cast<std::ptrdiff_t>(s.kernel);
  const auto windows = static_cast<std::size_t>((length + 2 * s.padding - kernel) / s.stride + 1);
  Array y(Shape{s.batch, s.outputs, windows}, Real(0));
  for (std::size_t b = 0; b < s.batch; ++b) {
    for (std::size_t o = 0; o < s.outputs; ++o) {
      for (std::size_t l = 0; l < windows; ++l) {
        double sum = bias(o);
        for (std::size_t c = 0; c < s.channels; ++c) {
          for (std::ptrdiff_t k = 0; k < kernel; ++k) {
            const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(l) * s.stride + k - s.padding;
            if (at < 0 || at >= length) continue;
            sum +=
                static_cast<double>(weight(o, c, static_cast<std::size_t>(k))) * x(b, c, static_cast<std::size_t>(at));
          }
        }
        y(b, o, l) = static_cast<Real>(sum);
      }
    }
  }
  return y;
}

}  // namespace

TEST_CASE("conv1d of odd and even lengths, strides, paddings and kernels") {
  Rng rng(1);
  const Sizes all[] = {{1, 1, 1, 1, 1, 1, 0}, {2, 3, 7, 2, 3, 1, 1}, {2, 2, 8, 3, 3, 2, 0}, {1, 2, 5, 2, 1, 1, 0},
                       {2, 1, 6, 2, 1, 3, 2}, {1, 2, 3, 2, 5, 1, 1}, {2, 2, 2, 1, 2, 3, 4}, {0, 2, 5, 3, 3, 1, 1},
                       {3, 2, 4, 1, 4, 1, 0}, {1, 1, 0, 2, 2, 1, 1}, {1, 0, 4, 2, 2, 1, 0}, {1, 2, 5, 0, 2, 1, 0}};
  for (const Sizes& s : all) {
    CAPTURE(s.batch, s.channels, s.length, s.outputs, s.kernel, s.stride, s.padding);
    const Tensor x(rng.normal({s.batch, s.channels, s.length}));
    const Tensor weight(rng.normal({s.outputs, s.channels, s.kernel}));
    const Tensor bias(rng.normal({s.outputs}));
    check_close(conv1d(x, weight, bias, s.stride, s.padding), plain_conv1d(x.value(), weight.value(), bias.value(), s),
                20 * kTight);
    check_gradients([s](const auto& xs) { return conv1d(xs[0], xs[1], xs[2], s.stride, s.padding); },
                    {x, weight, bias});
    check_gradients([s](const auto& xs) { return conv1d(xs[0], xs[1], {}, s.stride, s.padding); }, {x, weight});
  }
}

TEST_CASE("conv1d does not turn the kernel round") {
  check_close(conv1d(Tensor{{{1, 10, 100, 1000}}}, Tensor{{{1, 2}}}, Tensor{0.5}), Tensor{{{21.5, 210.5, 2100.5}}});
}

TEST_CASE("unfold1d and fold1d are adjoint, and each other's gradient") {
  Rng rng(2);
  for (const Window& window : {Window{3}, Window{1}, Window{2, 3}, Window{4, 2, 3}, Window{2, 5, 4}}) {
    for (std::size_t n : {4u, 7u}) {
      CAPTURE(window.kernel, window.stride, window.padding, n);
      const Tensor x(rng.normal({2, 3, n}));
      const Tensor columns = unfold1d(x, window);
      const Tensor y(rng.normal(columns.shape()));
      check_close(sum(columns * y), sum(x * fold1d(y, window, n)), 20 * kTight);
      check_gradients([window](const auto& xs) { return unfold1d(xs[0], window); }, {x});
      check_gradients([window, n](const auto& xs) { return fold1d(xs[0], window, n); }, {y});
    }
  }
}

TEST_CASE("conv1d refuses what does not fit") {
  const Tensor x = zeros({2, 3, 5}), weight = zeros({4, 3, 2}), bias = zeros({4});
  constexpr std::ptrdiff_t huge = std::numeric_limits<std::ptrdiff_t>::max();
  check_refused([&] { conv1d(zeros({3, 5}), weight); }, "[conv1d] x must be (batch,channels,length)");
  check_refused([&] { conv1d(x, zeros({4, 3})); }, "[conv1d] x must be (batch,channels,length)");
  check_refused([&] { conv1d(x, zeros({4, 2, 2})); }, "[conv1d] x and the weight must have equally many channels");
  check_refused([&] { conv1d(x, weight, zeros({3})); }, "[conv1d] the bias must be 1-D");
  check_refused([&] { conv1d(x, weight, zeros({4, 1})); }, "[conv1d] the bias must be 1-D");
  check_refused([&] { conv1d(x, zeros({4, 3, 6})); }, "[conv1d] the kernel must be at most as long");
  check_refused([&] { conv1d(x, zeros({4, 3, 8}), bias, 1, 1); }, "[conv1d] the kernel must be at most as long");
  check_refused([&] { conv1d(x, zeros({4, 3, 0})); }, "[conv1d] the kernel must be at least 1 long");
  check_refused([&] { conv1d(x, weight, bias, 0); }, "[conv1d] the stride must be at least 1");
  check_refused([&] { conv1d(x, weight, bias, -1); }, "[conv1d] the stride must be at least 1");
  check_refused([&] { conv1d(x, weight, bias, 1, -1); }, "[conv1d] the padding must be 0 or more");
  check_refused([&] { conv1d(x, weight, bias, 1, huge); }, "[conv1d] the padding must be");
  check_refused([&] { conv1d(x, weight, bias, 1, huge / 5); }, "[unfold1d]");
  check_refused([&] { fold1d(zeros({2, 6, 3}), {2}, 5); }, "[fold1d] columns must have the shape");
  check_refused([&] { fold1d(zeros({2, 5, 4}), {2}, 5); }, "[fold1d] columns must have the shape");
  CHECK(conv1d(x, weight, bias, huge).shape() == Shape{2, 4, 1});
}
