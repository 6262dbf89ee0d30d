#include "autograd/step.hpp"

#include "autograd/kernels.hpp"
#include "autograd/ops.hpp"
#include "autograd/shapes.hpp"

namespace TAPEGRAD {

constinit thread_local const char* running = "record";

namespace {

/// The gradient, summed down to the shape of the operand that `source` made.
template <class T>
T fitted(const T& gradient, const Step& source) {
  if (!broadcasts_to(source.shape, gradient.shape())) {
    refuse(running,
           std::string("the rule's gradient of an operand from '") + source.name +
               "' must have the operand's shape, or one that it broadcasts to",
           to_text(gradient.shape()) + " and " + to_text(source.shape));
  }
  return sum_to(gradient, source.shape);
}

/// The gradient of the step whose rule runs, where it is not read afterwards, and the step that gets it whole: `dx +=
/// dy` then moves it instead of copying.
struct Loan {
  const Array* dy = nullptr;
  Step* taker = nullptr;
};
thread_local Loan loan;

}  // namespace

void Sink<Array>::settle() const {
  loan.taker = nullptr;
  step_->borrows = false;
  step_->adjoint = pool_new<Array>(*loan.dy);
}

void Sink<Array>::operator+=(const Array& gradient) const {
  if (step_ == nullptr) return;
  if (step_->borrows) settle();
  if (gradient.shape() != step_->shape) {
    *this += fitted(gradient, *step_);
  } else if (step_->adjoint == nullptr && &gradient == loan.dy && loan.taker == nullptr) {
    loan.taker = step_;
    step_->borrows = true;
  } else if (step_->adjoint == nullptr) {
    step_->adjoint = evaluate<Array>(gradient);
  } else {
    add_in_place(*step_->adjoint, gradient);
  }
}

void Sink<Array>::operator+=(Array&& gradient) const {
  if (step_ == nullptr) return;
  if (step_->borrows) settle();
  if (gradient.shape() != step_->shape) gradient = fitted(gradient, *step_);
  if (step_->adjoint == nullptr) {
    step_->adjoint = pool_new<Array>(std::move(gradient));
  } else {
    add_in_place(*step_->adjoint, gradient);
  }
}

void Sink<Array>::operator+=(const Product& gradient) const {
  if (step_ == nullptr) return;
  if (step_->borrows) settle();
  const Shape& shape = step_->shape;
  if (shape.size() < 2 || !std::equal(shape.end() - 2, shape.end(), gradient.shape.end() - 2)) {
    *this += gradient.evaluate();  // only batch axes can be summed over on the way
    return;
  }
  if (step_->adjoint != nullptr) {
    gradient.fill(*step_->adjoint, true);
    return;
  }
  Array first = empty_array(step_->shape);
  gradient.fill(first, false);
  step_->adjoint = pool_new<Array>(std::move(first));
}

Array* Sink<Array>::buffer() const {
  if (step_ == nullptr) return nullptr;
  if (step_->borrows) settle();
  if (step_->adjoint == nullptr) step_->adjoint = pool_new<Array>(step_->shape, Real(0));
  return step_->adjoint;
}

Sink<Array>::Room Sink<Array>::room() const {
  if (step_ == nullptr || step_->borrows || step_->adjoint != nullptr) return {buffer(), true};
  step_->adjoint = pool_new<Array>(empty_array(step_->shape));
  return {step_->adjoint, false};
}

void Sink<Tensor>::operator+=(const Tensor& gradient) const {
  if (step_ == nullptr) return;
  Tensor& sum = (*gradients_)[step_->index];
  const Tensor term = gradient.shape() == step_->shape ? gradient : fitted(gradient, *step_);
  sum = sum.defined() ? sum + term : term;
}

void run_rule(Step& step) {
  const Loan outer = std::exchange(loan, {step.retained ? nullptr : step.adjoint, nullptr});
  try {
    step.backward(*step.adjoint);
  } catch (...) {
    if (loan.taker != nullptr) loan.taker->borrows = false;
    loan = outer;
    throw;
  }
  if (loan.taker != nullptr) {
    loan.taker->borrows = false;
    loan.taker->adjoint = std::exchange(step.adjoint, nullptr);
  }
  loan = outer;
}

}  // namespace TAPEGRAD
