#include "autograd/tensor.hpp"

#include "autograd/shapes.hpp"

namespace TAPEGRAD {
void Tensor::drop(Cell* cell) noexcept {
  if (cell->handles.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  pool_delete(cell->grad);
  pool_delete(cell);
}

std::size_t Tensor::extent(int axis) const { return shape()[normalize_axis(axis, rank(), "extent")]; }

Real Tensor::item() const {
  require(size() == 1, "item", "the Tensor must have exactly one element", shape());
  return value().data()[0];
}

Array& Tensor::mutable_value() {
  require(cell().leaf, "mutable_value", "the output of a recorded op can't be changed in place: detach it first");
  ++cell_->version;
  return cell_->value;
}

Tensor& Tensor::set_requires_grad(bool wanted) {
  require(cell().leaf, "set_requires_grad", "only a leaf can be told: detach the output of a recorded op first");
  cell_->requires_grad = wanted;
  return *this;
}

const Array& Tensor::grad() const {
  require(has_grad(), "grad", "no gradient has reached this Tensor: run backward on a loss that depends on it");
  return *cell_->grad;
}

Array& Tensor::mutable_grad() { return const_cast<Array&>(grad()); }

void Tensor::zero_grad() {
  pool_delete(cell().grad);
  cell_->grad = nullptr;
}

Tensor Tensor::detach() const { return Tensor(value()); }

}  // namespace TAPEGRAD
