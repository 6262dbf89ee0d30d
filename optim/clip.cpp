#include "optim/clip.hpp"

#include <algorithm>
#include <cmath>

namespace TAPEGRAD::optim {
namespace {

std::vector<Parameter> with_gradient_once(const std::vector<Parameter>& parameters) {
  std::vector<Parameter> once;
  for (const Parameter& parameter : parameters) {
    const auto same = [&](const Parameter& other) { return other.same_as(parameter); };
    if (parameter.has_grad() && std::none_of(once.begin(), once.end(), same)) once.push_back(parameter);
  }
  return once;
}

/// Sum of (g * scale)^2. In sixteen sums side by side: one alone waits for each of its additions.
double sum_of_squares(const std::vector<Parameter>& parameters, double scale) {
  constexpr std::size_t kSums = 16;
  double total = 0;
  for (const Parameter& parameter : parameters) {
    const Real* g = parameter.grad().data();
    const std::size_t count = parameter.grad().size();
    double sums[kSums] = {};
    std::size_t k = 0;
    for (; k + kSums <= count; k += kSums) {
      for (std::size_t j = 0; j < kSums; ++j) sums[j] += (g[k + j] * scale) * (g[k + j] * scale);
    }
    for (; k < count; ++k) sums[0] += (g[k] * scale) * (g[k] * scale);
    for (const double sum : sums) total += sum;
  }
  return total;
}

double largest(const std::vector<Parameter>& parameters) {
  double most = 0;
  for (const Parameter& parameter : parameters) {
    for (const Real g : parameter.grad().storage()) most = std::max(most, std::abs(static_cast<double>(g)));
  }
  return most;
}

}  // namespace

double clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm) {
  require(max_norm >= 0, "clip_grad_norm", "max_norm must be at least 0", max_norm);
  std::vector<Parameter> once = with_gradient_once(parameters);
  double norm = std::sqrt(sum_of_squares(once, 1));
  if (std::isinf(norm) || norm < 1e-140) {  // the squares may have left double's range, where the norm has not
    const double most = largest(once);
    if (most > 0 && std::isfinite(most)) {
      const double scale = std::ldexp(1.0, std::clamp(-std::ilogb(most), -1000, 1000));  // a power of 2: exact
      norm = std::sqrt(sum_of_squares(once, scale)) / scale;
    }
  }
  if (!std::isfinite(norm) || norm <= max_norm) return norm;
  const double factor = max_norm / norm;
  for (Parameter& parameter : once) {
    for (Real& g : parameter.mutable_grad().storage()) g = static_cast<Real>(g * factor);
  }
  return norm;
}

void clip_grad_value(const std::vector<Parameter>& parameters, double limit) {
  require(limit >= 0, "clip_grad_value", "the limit must be at least 0", limit);
  const Real high = static_cast<Real>(limit);
  for (Parameter& parameter : with_gradient_once(parameters)) {
    for (Real& g : parameter.mutable_grad().storage()) {
      if (g > high) g = high;
      if (g < -high) g = -high;
    }
  }
}

}  // namespace TAPEGRAD::optim
