/// Tensor: a handle to a value, and to the gradient that a backward pass leaves there.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <iosfwd>

#include "autograd/mask.hpp"
#include "autograd/nested_list.hpp"

namespace TAPEGRAD {

class Tape;
struct Step;

/// What a Tensor is a handle to. `step` is where the open tape `tape` recorded it; a leaf is a Tensor that the user
/// made.
struct Cell {
  template <class... Args>
  explicit Cell(Args&&... args) : value(std::forward<Args>(args)...) {}

  Array value;
  Array* grad = nullptr;
  Step* step = nullptr;
  std::uint64_t tape = 0;
  std::uint32_t version = 0;
  std::atomic<std::uint32_t> handles{1};
  bool requires_grad = false;
  bool leaf = true;
};

/// A handle to an array that takes part in differentiation. Copies are cheap and share value and gradient.
///
/// A Tensor comes from numbers (`Tensor x{{1, 2}, {3, 4}}`), from an xtensor array or expression, or from an op. It
/// becomes a leaf to differentiate with respect to by `set_requires_grad()`, or by being a Parameter. Handles may be
/// copied, and values read, by several threads; but one Tensor that requires grad is recorded on one thread at a time.
class Tensor {
 public:
  /// No Tensor yet; every use but assignment, copying and `defined()` is refused.
  Tensor() = default;

  /// A scalar, of shape ().
  template <class Number>
  requires std::is_arithmetic_v<Number> Tensor(Number number) : Tensor(Array(Shape{}, static_cast<Real>(number))) {}

  /// Nested lists of numbers, as deep as there are axes: `Tensor{1, 2}` has shape (2), `Tensor{{1}, {2}}` shape (2,1).
  /// Refused when lists beside each other differ in length.
  Tensor(std::initializer_list<NestedList> list) : Tensor(to_array(list)) {}

  /// The value of an xtensor array or expression, evaluated here.
  Tensor(Array&& array) : cell_(pool_new<Cell>(std::move(array))) {}
  template <class E>
  Tensor(const xt::xexpression<E>& expression) : cell_(evaluate<Cell>(expression.derived_cast())) {}

  Tensor(const Tensor& other) noexcept : cell_(other.cell_) {
    if (cell_) cell_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~Tensor() {
    if (cell_) drop(cell_);
  }

  bool defined() const { return cell_ != nullptr; }
  const Array& value() const { return cell().value; }
  const Shape& shape() const { return value().shape(); }
  std::size_t rank() const { return shape().size(); }
  std::size_t size() const { return value().size(); }

  /// The extent of an axis; negative axes count from the end. Refuses an axis that the Tensor does not have.
  std::size_t extent(int axis) const;

  /// The number in a Tensor of exactly one element.
  Real item() const;

  /// The value, to be changed in place (by an optimiser, say). Backward passes that saved the old value are refused
  /// afterwards. Refused for the output of a recorded op.
  Array& mutable_value();

  bool requires_grad() const { return cell().requires_grad; }
  /// Makes this a leaf whose gradient is wanted, or no longer wanted. Refused for the output of a recorded op.
  Tensor& set_requires_grad(bool wanted = true);

  /// What backward passes have added up since the last zero_grad(). Refused when none has.
  const Array& grad() const;
  bool has_grad() const { return cell().grad != nullptr; }
  /// The gradient, to be changed in place (clipped, say).
  Array& mutable_grad();
  void zero_grad();

  /// The same numbers as a new leaf that no tape knows: gradients stop here.
  Tensor detach() const;

  /// How often the value has been changed in place.
  std::uint32_t version() const { return cell().version; }

  /// What this is a handle to; for the tape.
  Cell& cell() const {
    require(cell_ != nullptr, "Tensor", "an undefined Tensor can't be used: give it a value first");
    return *cell_;
  }
  bool same_as(const Tensor& other) const { return cell_ == other.cell_; }

  /// Prints shape and values, `Tensor (2,2) {{1, 2}, {3, 4}}`, with the stream's precision. Of an axis longer than 8 in
  /// a Tensor of more than 64 elements it prints the first and last three.
  friend std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

 private:
  static void drop(Cell* cell) noexcept;
  Cell* cell_ = nullptr;
};

/// A leaf whose gradient is wanted: what a module learns.
class Parameter : public Tensor {
 public:
  Parameter() = default;
  explicit Parameter(Tensor value) : Tensor(std::move(value)) { set_requires_grad(); }
};

}  // namespace TAPEGRAD
