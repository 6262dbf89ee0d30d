/// Adam and AdamW: steps scaled by what each element's gradients have been.
#pragma once

#include "optim/optimizer.hpp"

namespace TAPEGRAD::optim {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;                       ///< how much of the mean gradient is kept at each step, in [0,1)
  double beta2 = 0.999;                     ///< how much of the mean squared gradient, in [0,1)
  double eps = 1e-8;                        ///< keeps the divisor from 0
  std::optional<double> weight_decay = {};  ///< 0 for Adam, 0.01 for AdamW when left out
};

/// Adam (Kingma and Ba, 2015) with the formulas that PyTorch documents. With p a parameter, g its gradient, and t the
/// number of the parameter's own steps, from 1:
///
///   g += weight_decay p
///   m  = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2        both 0 before the first step
///   p -= learning_rate m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
class Adam : public Optimizer {
 public:
  /// Refuses a beta outside [0,1), and other numbers that are negative or not finite.
  explicit Adam(std::vector<Group> groups, const AdamOptions& options = {})
      : Adam("Adam", std::move(groups), options, false) {}
  explicit Adam(std::vector<Parameter> parameters, const AdamOptions& options = {})
      : Adam(std::vector<Group>{{std::move(parameters)}}, options) {}

 protected:
  Adam(const char* name, std::vector<Group> groups, const AdamOptions& options, bool decoupled);

 private:
  void update(Slot& slot, const Rates& rates) override;

  AdamOptions options_;
  bool decoupled_;  // whether the weights decay by themselves, not through the gradient
};

/// Adam whose weights decay apart from the gradient (Loshchilov and Hutter, 2019), as PyTorch documents it: first
/// p -= learning_rate weight_decay p, then Adam's step with the gradient as it is.
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Group> groups, const AdamOptions& options = {})
      : Adam("AdamW", std::move(groups), options, true) {}
  explicit AdamW(std::vector<Parameter> parameters, const AdamOptions& options = {})
      : AdamW(std::vector<Group>{{std::move(parameters)}}, options) {}
};

}  // namespace TAPEGRAD::optim
