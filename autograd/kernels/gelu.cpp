#include <cmath>
#include <numbers>

#include "autograd/kernels.hpp"
#include "autograd/kernels/parallel.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

using simd::normal;

/// The plain formula, for double. erfc keeps its relative accuracy where 1 + erf cancels.
[[maybe_unused]] simd::Normal<double> normal(double x) {
  return {0.5 * std::erfc(-x / std::numbers::sqrt2), std::exp(-0.5 * x * x) * simd::kInvSqrtTwoPi};
}

/// f(elements...) of the arrays, which have one shape: a batch at a time in float, one at a time in double.
template <class F, class... Arrays>
Array map_normal(F f, const Array& x, const Arrays&... others) {
  Array y = empty_array(x.shape());
  // An element is as much work as four of a sum.
  parallel_ranges(x.size(), 4, [&, to = y.data()](std::size_t first, std::size_t last) {
    if constexpr (std::is_same_v<Real, float>) {
      simd::map(f, to + first, last - first, x.data() + first, others.data() + first...);
    } else {
      for (std::size_t i = first; i < last; ++i) to[i] = f(x.data()[i], others.data()[i]...);
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
