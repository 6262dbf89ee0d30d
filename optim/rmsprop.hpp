/// RMSprop: the gradient divided by a running root mean square.
#pragma once

#include "optim/optimizer.hpp"

namespace TAPEGRAD::optim {

struct RMSpropOptions {
  double learning_rate = 0.01;
  double alpha = 0.99;  ///< how much of the mean squared gradient is kept at each step, in [0,1)
  double eps = 1e-8;    ///< keeps the divisor from 0
  double momentum = 0;  ///< how much of the last step's direction is kept
  double weight_decay = 0;
  bool centered = false;  ///< divides by the gradient's standard deviation instead of its root mean square
};

/// RMSprop (Hinton, 2012, lecture 6e) with the formulas that PyTorch documents. With p a parameter and g its gradient:
///
///   g += weight_decay p
///   v  = alpha v + (1 - alpha) g^2        a = alpha a + (1 - alpha) g        both 0 before the first step
///   d  = sqrt(v) + eps                    centered: sqrt(max(v - a^2, 0)) + eps
///   b  = momentum b + g / d               0 before the first step
///   p -= learning_rate b
class RMSprop : public Optimizer {
 public:
  /// Refuses alpha outside [0,1), and other numbers that are negative or not finite.
  explicit RMSprop(std::vector<Group> groups, const RMSpropOptions& options = {});
  explicit RMSprop(std::vector<Parameter> parameters, const RMSpropOptions& options = {})
      : RMSprop(std::vector<Group>{{std::move(parameters)}}, options) {}

 private:
  void update(Slot& slot, const Rates& rates) override;

  RMSpropOptions options_;
};

}  // namespace TAPEGRAD::optim
