#include "optim/rmsprop.hpp"

namespace TAPEGRAD::optim {
namespace {

std::vector<const char*> remembered(const RMSpropOptions& options) {
  std::vector<const char*> names{"square_avg"};
  if (options.momentum != 0) names.push_back("momentum_buffer");
  if (options.centered) names.push_back("grad_avg");
  return names;
}

}  // namespace

RMSprop::RMSprop(std::vector<Group> groups, const RMSpropOptions& options)
    : Optimizer("RMSprop", std::move(groups), options.learning_rate, options.weight_decay, remembered(options)),
      options_(options) {
  require(options.alpha >= 0 && options.alpha < 1, "RMSprop", "alpha must be in [0,1)", options.alpha);
  require_not_negative(options.eps, "eps");
  require_not_negative(options.momentum, "momentum");
}

void RMSprop::update(Slot& slot, const Rates& rates) {
  const Real rate = static_cast<Real>(rates.learning);
  const Real decay = static_cast<Real>(rates.decay);
  const Real alpha = static_cast<Real>(options_.alpha), fresh = static_cast<Real>(1 - options_.alpha);
  const Real eps = static_cast<Real>(options_.eps);
  const Real momentum = static_cast<Real>(options_.momentum);
  Real* p = slot.parameter.mutable_value().data();
  const Real* grad = slot.parameter.grad().data();
  Real* v = slot.arrays[0].data();
  Real* b = momentum != 0 ? slot.arrays[1].data() : nullptr;
  Real* a = options_.centered ? slot.arrays.back().data() : nullptr;
  const std::size_t count = slot.parameter.size();
  for (std::size_t k = 0; k < count; ++k) {
    const Real g = decay != 0 ? grad[k] + decay * p[k] : grad[k];
    v[k] = alpha * v[k] + fresh * g * g;
    Real square = v[k];
    if (a) {
      a[k] += fresh * (g - a[k]);
      square -= a[k] * a[k];
      if (square < 0) square = 0;  // by rounding; NaN stays
    }
    const Real scaled = g / (std::sqrt(square) + eps);
    if (b) b[k] = momentum * b[k] + scaled;
    p[k] -= rate * (b ? b[k] : scaled);
  }
}

}  // namespace TAPEGRAD::optim
