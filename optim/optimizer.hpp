/// What every optimiser has: handles to the parameters, and a learning rate.
#pragma once

#include <cmath>
#include <vector>

#include "autograd/tensor.hpp"

namespace TAPEGRAD::optim {

/// Base of the optimisers. A training step is backward, step(), zero_grad().
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Changes every parameter that has a gradient, in place; the others stay. Refused when none has one. Infinities and
  /// NaN in gradients reach the parameters: nothing is hidden.
  virtual void step() = 0;

  /// Drops the parameters' gradients.
  void zero_grad() {
    for (Parameter& parameter : parameters_) parameter.zero_grad();
  }

  double learning_rate() const { return learning_rate_; }
  /// Refuses a negative or non-finite rate.
  void set_learning_rate(double rate) {
    require_not_negative(rate, "learning_rate");
    learning_rate_ = rate;
  }

  const std::vector<Parameter>& parameters() const { return parameters_; }

 protected:
  /// Refuses an empty list, an undefined parameter, and one that is listed twice.
  Optimizer(const char* name, std::vector<Parameter> parameters, double learning_rate)
      : name_(name), parameters_(std::move(parameters)) {
    require(!parameters_.empty(), name_, "there must be a parameter");
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      require(parameters_[i].defined(), name_, "every parameter must be defined; undefined is number", i);
      for (std::size_t j = 0; j < i; ++j) {
        require(!parameters_[i].same_as(parameters_[j]), name_, "a parameter must be listed once", j, i);
      }
    }
    set_learning_rate(learning_rate);
  }

  void require_not_negative(double number, const char* what) const {
    require(number >= 0 && std::isfinite(number), name_, std::string(what) + " must be at least 0 and finite", number);
  }

  /// What step() asks first: before any parameter has changed.
  void require_gradients() const {
    bool any = false;
    for (const Parameter& parameter : parameters_) {
      if (!parameter.has_grad()) continue;
      any = true;
      require(parameter.grad().shape() == parameter.shape(), name_, "a gradient must have its parameter's shape",
              parameter.grad().shape(), parameter.shape());
    }
    require(any, name_, "no parameter has a gradient (was a Tape open?)");
  }

  const char* name_;
  std::vector<Parameter> parameters_;

 private:
  double learning_rate_ = 0;
};

}  // namespace TAPEGRAD::optim
