#include <cmath>
#include <numbers>

#include "autograd/kernels.hpp"
#include "autograd/kernels/parallel.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

constexpr double kInvSqrtTwoPi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;

/// The standard normal distribution function, and its density.
template <class X>
struct Normal {
  X cdf, pdf;
};

/// The plain formula, for double. erfc keeps its relative accuracy where 1 + erf cancels.
[[maybe_unused]] Normal<double> normal(double x) {
  return {0.5 * std::erfc(-x / std::numbers::sqrt2), std::exp(-0.5 * x * x) * kInvSqrtTwoPi};
}

/// In float, for a batch: with a = |x|, the upper tail 1 - cdf(a) is e^(-a^2/2) times a smooth function, here a
/// polynomial in t = 1 / (1 + a/4), fitted for a in 0 ... 14 to a relative error below 1e-8. One exponential serves
/// both numbers.
template <class Batch>
Normal<Batch> normal(const Batch& x) {
  constexpr float kTail[] = {0.0997479036f, 0.0994925499f, 0.0955157727f, 0.0719992146f,  0.0866573676f,
                             0.0127111264f, 0.0284365099f, 0.0516519509f, -0.0627920255f, 0.016579628f};
  const Batch a = xsimd::min(Batch(20), xsimd::abs(x));  // no infinity comes further; in this order, a NaN does
  const Batch t = Batch(1) / xsimd::fma(Batch(0.25f), a, Batch(1));
  Batch tail(kTail[9]);
  for (int power = 8; power >= 0; --power) tail = xsimd::fma(tail, t, Batch(kTail[power]));
  // What rounding took from a^2 would be magnified by e^(-a^2/2). With a to 7 binary places, whose square is exact:
  const Batch shift(98304);
  const Batch coarse = (a + shift) - shift;
  const Batch square = a * a;
  const Batch lost = (coarse * coarse - square) + (a - coarse) * (coarse + a);
  const Batch bell = xsimd::exp(square * Batch(-0.5f)) * xsimd::fma(lost, Batch(-0.5f), Batch(1));
  const Batch upper = tail * t * bell;
  return {xsimd::select(x < Batch(0), upper, Batch(1) - upper), bell * Batch(static_cast<float>(kInvSqrtTwoPi))};
}

/// f(elements...) of the arrays, which have one shape: a batch at a time in float, one at a time in double.
template <class F, class... Arrays>
Array map_normal(F f, const Array& x, const Arrays&... others) {
  constexpr std::size_t kBlock = 1 << 13;
  Array y = empty_array(x.shape());
  Real* to = y.data();
  parallel_for((x.size() + kBlock - 1) / kBlock, x.size() >= kParallel / 4, [&](std::size_t block) {
    const std::size_t first = block * kBlock;
    const std::size_t n = std::min(kBlock, x.size() - first);
    if constexpr (std::is_same_v<Real, float>) {
      simd::map(f, to + first, n, x.data() + first, others.data() + first...);
    } else {
      for (std::size_t i = first; i < first + n; ++i) to[i] = f(x.data()[i], others.data()[i]...);
    }
  });
  return y;
}

}  // namespace

Array normal_cdf(const Array& x) {
  return map_normal([](const auto& v) { return normal(v).cdf; }, x);
}

Array gelu_values(const Array& x) {
  return map_normal([](const auto& v) { return v * normal(v).cdf; }, x);
}

Array gelu_backward(const Array& dy, const Array& x) {
  const auto times_slope = [](const auto& v, const auto& d) {
    const auto [cdf, pdf] = normal(v);
    return d * (cdf + v * pdf);
  };
  return map_normal(times_slope, x, dy);
}

}  // namespace TAPEGRAD
