#include "optim/adam.hpp"

namespace TAPEGRAD::optim {

Adam::Adam(const char* name, std::vector<Parameter> parameters, const AdamOptions& options, bool decoupled)
    : Optimizer(name, std::move(parameters), options.learning_rate),
      options_(options),
      decay_(options.weight_decay.value_or(decoupled ? 0.01 : 0)),
      decoupled_(decoupled),
      states_(parameters_.size()) {
  require(options.beta1 >= 0 && options.beta1 < 1, name_, "beta1 must be in [0,1)", options.beta1);
  require(options.beta2 >= 0 && options.beta2 < 1, name_, "beta2 must be in [0,1)", options.beta2);
  require_not_negative(options.eps, "eps");
  require_not_negative(decay_, "weight_decay");
}

void Adam::step() {
  require_gradients();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {  // all memory is taken before anything changes
    if (!parameters_[i].has_grad() || states_[i].steps > 0) continue;
    states_[i].mean = Array(parameters_[i].shape(), Real(0));
    states_[i].square = Array(parameters_[i].shape(), Real(0));
  }
  const Real beta2 = static_cast<Real>(options_.beta2);
  const Real new1 = static_cast<Real>(1 - options_.beta1), new2 = static_cast<Real>(1 - options_.beta2);
  const Real eps = static_cast<Real>(options_.eps);
  const Real keep = static_cast<Real>(decoupled_ ? 1 - learning_rate() * decay_ : 1);
  const Real decay = static_cast<Real>(decoupled_ ? 0 : decay_);

  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].has_grad()) continue;
    State& state = states_[i];
    ++state.steps;
    const Real rate = static_cast<Real>(learning_rate() / (1 - std::pow(options_.beta1, state.steps)));
    const Real root = static_cast<Real>(std::sqrt(1 - std::pow(options_.beta2, state.steps)));
    Real* p = parameters_[i].mutable_value().data();
    const Real* grad = parameters_[i].grad().data();
    Real* m = state.mean.data();
    Real* v = state.square.data();
    const std::size_t count = parameters_[i].size();
    for (std::size_t k = 0; k < count; ++k) {
      const Real g = decay != 0 ? grad[k] + decay * p[k] : grad[k];
      m[k] += new1 * (g - m[k]);
      v[k] = beta2 * v[k] + new2 * g * g;
      p[k] = keep * p[k] - rate * m[k] / (std::sqrt(v[k]) / root + eps);
    }
  }
}

}  // namespace TAPEGRAD::optim
