/// SGD: steps down the gradient, with momentum if asked for.
#pragma once

#include "optim/optimizer.hpp"

namespace TAPEGRAD::optim {

struct SGDOptions {
  double learning_rate = 1e-3;
  double momentum = 0;      ///< how much of the last step's direction is kept
  double dampening = 0;     ///< how much of the gradient is left out of the direction, from the second step on
  double weight_decay = 0;  ///< weight of the penalty |parameter|^2 / 2
  bool nesterov = false;    ///< looks one step ahead; needs momentum > 0 and dampening 0
};

/// Stochastic gradient descent with the formulas that PyTorch documents. With p a parameter and g its gradient:
///
///   g += weight_decay p
///   b  = momentum b + (1 - dampening) g       b = g at the parameter's first step
///   p -= learning_rate (g + momentum b)       with nesterov; else learning_rate b, which is g without momentum
class SGD : public Optimizer {
 public:
  /// Refuses numbers that are not finite, negative ones (but for dampening), and nesterov without what it needs.
  explicit SGD(std::vector<Group> groups, const SGDOptions& options = {});
  explicit SGD(std::vector<Parameter> parameters, const SGDOptions& options = {})
      : SGD(std::vector<Group>{{std::move(parameters)}}, options) {}

 private:
  void update(Slot& slot, const Rates& rates) override;

  SGDOptions options_;
};

}  // namespace TAPEGRAD::optim
