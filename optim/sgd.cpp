#include "optim/sgd.hpp"

namespace TAPEGRAD::optim {
namespace {

std::vector<const char*> remembered(const SGDOptions& options) {
  if (options.momentum == 0) return {};
  return {"momentum_buffer"};
}

}  // namespace

SGD::SGD(std::vector<Group> groups, const SGDOptions& options)
    : Optimizer("SGD", std::move(groups), options.learning_rate, options.weight_decay, remembered(options)),
      options_(options) {
  require_not_negative(options.momentum, "momentum");
  require(std::isfinite(options.dampening), "SGD", "dampening must be finite", options.dampening);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0), "SGD",
          "nesterov needs momentum above 0 and dampening 0", options.momentum, options.dampening);
}

void SGD::update(Slot& slot, const Rates& rates) {
  const Real rate = static_cast<Real>(rates.learning);
  const Real decay = static_cast<Real>(rates.decay);
  const Real momentum = static_cast<Real>(options_.momentum);
  const bool nesterov = options_.nesterov;
  Real* p = slot.parameter.mutable_value().data();
  const Real* grad = slot.parameter.grad().data();
  const std::size_t count = slot.parameter.size();
  if (momentum == 0) {
    for (std::size_t k = 0; k < count; ++k) p[k] -= rate * (decay != 0 ? grad[k] + decay * p[k] : grad[k]);
    return;
  }
  Real* b = slot.arrays[0].data();
  const Real share = slot.steps > 1 ? static_cast<Real>(1 - options_.dampening) : Real(1);
  for (std::size_t k = 0; k < count; ++k) {
    const Real g = decay != 0 ? grad[k] + decay * p[k] : grad[k];
    b[k] = momentum * b[k] + share * g;
    p[k] -= rate * (nesterov ? g + momentum * b[k] : b[k]);
  }
}

}  // namespace TAPEGRAD::optim
