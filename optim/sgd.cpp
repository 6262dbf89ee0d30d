#include "optim/sgd.hpp"

namespace TAPEGRAD::optim {

SGD::SGD(std::vector<Parameter> parameters, const SGDOptions& options)
    : Optimizer("SGD", std::move(parameters), options.learning_rate),
      options_(options),
      directions_(parameters_.size()),
      moving_(parameters_.size()) {
  require_not_negative(options.momentum, "momentum");
  require_not_negative(options.weight_decay, "weight_decay");
  require(std::isfinite(options.dampening), "SGD", "dampening must be finite", options.dampening);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0), "SGD",
          "nesterov needs momentum above 0 and dampening 0", options.momentum, options.dampening);
}

void SGD::step() {
  require_gradients();
  const Real rate = static_cast<Real>(learning_rate());
  const Real momentum = static_cast<Real>(options_.momentum);
  const Real decay = static_cast<Real>(options_.weight_decay);
  const bool nesterov = options_.nesterov;

  if (momentum != 0) {  // all memory is taken before anything changes
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const bool fresh = parameters_[i].has_grad() && !moving_[i];
      if (fresh) directions_[i] = Array(parameters_[i].shape(), Real(0));
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].has_grad()) continue;
    Real* p = parameters_[i].mutable_value().data();
    const Real* grad = parameters_[i].grad().data();
    const std::size_t count = parameters_[i].size();
    if (momentum == 0) {
      for (std::size_t k = 0; k < count; ++k) p[k] -= rate * (decay != 0 ? grad[k] + decay * p[k] : grad[k]);
      continue;
    }
    Real* b = directions_[i].data();
    const Real share = moving_[i] ? static_cast<Real>(1 - options_.dampening) : Real(1);
    for (std::size_t k = 0; k < count; ++k) {
      const Real g = decay != 0 ? grad[k] + decay * p[k] : grad[k];
      b[k] = momentum * b[k] + share * g;
      p[k] -= rate * (nesterov ? g + momentum * b[k] : b[k]);
    }
    moving_[i] = true;
  }
}

}  // namespace TAPEGRAD::optim
