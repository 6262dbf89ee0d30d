#include "optim/adam.hpp"

#include "autograd/kernels/parallel.hpp"

namespace TAPEGRAD::optim {

Adam::Adam(const char* name, std::vector<Group> groups, const AdamOptions& options, bool decoupled)
    : Optimizer(name, std::move(groups), options.learning_rate, options.weight_decay.value_or(decoupled ? 0.01 : 0),
                {"exp_avg", "exp_avg_sq"}),
      options_(options),
      decoupled_(decoupled) {
  require(options.beta1 >= 0 && options.beta1 < 1, name, "beta1 must be in [0,1)", options.beta1);
  require(options.beta2 >= 0 && options.beta2 < 1, name, "beta2 must be in [0,1)", options.beta2);
  require_not_negative(options.eps, "eps");
}

void Adam::update(Slot& slot, const Rates& rates) {
  const double steps = static_cast<double>(slot.steps);
  const Real beta2 = static_cast<Real>(options_.beta2);
  const Real new1 = static_cast<Real>(1 - options_.beta1), new2 = static_cast<Real>(1 - options_.beta2);
  const Real eps = static_cast<Real>(options_.eps);
  const Real keep = static_cast<Real>(decoupled_ ? 1 - rates.learning * rates.decay : 1);
  const Real decay = static_cast<Real>(decoupled_ ? 0 : rates.decay);
  const Real rate = static_cast<Real>(rates.learning / (1 - std::pow(options_.beta1, steps)));
  const Real root = static_cast<Real>(std::sqrt(1 - std::pow(options_.beta2, steps)));
  Real* p = slot.parameter.mutable_value().data();
  const Real* grad = slot.parameter.grad().data();
  Real* m = slot.arrays[0].data();
  Real* v = slot.arrays[1].data();
  const std::size_t count = slot.parameter.size();
  parallel_ranges(count, 1, [=](std::size_t first, std::size_t last) {
    for (std::size_t k = first; k < last; ++k) {
      const Real g = decay != 0 ? grad[k] + decay * p[k] : grad[k];
      m[k] += new1 * (g - m[k]);
      v[k] = beta2 * v[k] + new2 * g * g;
      p[k] = keep * p[k] - rate * m[k] / (std::sqrt(v[k]) / root + eps);
    }
  });
}

}  // namespace TAPEGRAD::optim
