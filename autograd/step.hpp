/// A step: what one recorded op left on the tape; and sinks, where its rule puts gradients.
#pragma once

#include <vector>

#include "autograd/tensor.hpp"

namespace TAPEGRAD {

/// What a printed tape says about one operand of a step.
struct OperandInfo {
  const Step* source;  // the step that made it, null for a constant
  const Shape* shape;  // null where it is not known
  std::size_t saved;   // bytes that the step keeps of it
  const char* kind;    // "", "mask", "index", "saved"
};

/// One recorded op. Steps live in the tape's arena; links between them are plain pointers to earlier steps.
struct Step {
  Step(const char* step_name, const Shape& output_shape) : name(step_name), shape(output_shape) {}
  virtual ~Step() { pool_delete(adjoint); }
  Step(const Step&) = delete;

  /// Runs the rule on arrays: the gradients go to the sources' adjoints.
  virtual void backward(const Array& dy) = 0;
  /// Runs the rule on Tensors, recording it: the gradients go to `gradients`, by the sources' indices.
  virtual void backward(const Tensor& dy, std::vector<Tensor>& gradients) = 0;
  virtual void describe(std::vector<OperandInfo>& operands) const = 0;
  virtual std::size_t saved_output_bytes() const { return 0; }
  /// The Tensor that a leaf's step stands for, null for an op's.
  virtual const Tensor* leaf() const { return nullptr; }

  const char* name;
  Shape shape;               // of the output, so of the adjoint too
  Array* adjoint = nullptr;  // the gradient gathered so far, null while it is zero
  bool borrows = false;      // its gradient so far is the one of the step whose rule runs, which it will take over
  std::uint32_t index = 0;
  bool wanted = true;     // whether anybody asks for its gradient
  bool runs = true;       // whether anybody asks for an operand's gradient, so that the rule has something to do
  bool retained = false;  // whether its adjoint is read after the backward pass
};

/// The matrix product op(a) op(b), not yet computed; see `matmul` in kernels.hpp.
struct Product;

/// Where a rule puts a gradient: `dx += expression`. It skips a gradient that nobody wants, sums one that is larger
/// than the operand down to the operand's shape (undoing broadcasting), builds the first in place and adds the others.
template <class T>
class Sink;

template <>
class Sink<Array> {
 public:
  explicit Sink(Step* step) : step_(step) {}

  /// Whether the gradient is wanted; ask before work that `+=` would not skip.
  explicit operator bool() const { return step_ != nullptr; }
  /// The operand's shape. Only for a wanted gradient.
  const Shape& shape() const { return step_->shape; }

  template <class E>
  void operator+=(const xt::xexpression<E>& gradient) const {
    if (step_ == nullptr) return;
    if (step_->borrows) settle();
    const E& expression = gradient.derived_cast();
    const auto& shape = expression.shape();
    if (!std::equal(shape.begin(), shape.end(), step_->shape.begin(), step_->shape.end())) {
      *this += Array(expression);  // xtensor's own += would resize
    } else if (step_->adjoint == nullptr) {
      step_->adjoint = evaluate<Array>(expression);
    } else if (step_->shape.empty()) {
      step_->adjoint->data()[0] += expression();
    } else {
      step_->adjoint->plus_assign(expression);
    }
  }
  void operator+=(const Array& gradient) const;
  void operator+=(Array&& gradient) const;
  void operator+=(const Product& gradient) const;

  /// The operand's gradient so far (zeros at first), for kernels that add to several in one pass; null when unwanted.
  Array* buffer() const;

  /// The same, but whether to add to it is said, and if not, its elements are yet to be written.
  struct Room {
    Array* array;
    bool add;
  };
  Room room() const;

 private:
  void settle() const;  // copies a borrowed gradient, which is about to be changed

  Step* step_;
};

template <>
class Sink<Tensor> {
 public:
  Sink(Step* step, std::vector<Tensor>* gradients) : step_(step), gradients_(gradients) {}
  explicit operator bool() const { return step_ != nullptr; }
  const Shape& shape() const { return step_->shape; }
  void operator+=(const Tensor& gradient) const;

 private:
  Step* step_;
  std::vector<Tensor>* gradients_;
};

template <class T>
using Sinks = PoolVector<Sink<T>>;

/// The op whose rule runs, for what its sinks refuse.
extern constinit thread_local const char* running;

/// Runs the step's rule on its adjoint; afterwards the adjoint belongs to the step that borrowed it, if one did.
void run_rule(Step& step);

}  // namespace TAPEGRAD
