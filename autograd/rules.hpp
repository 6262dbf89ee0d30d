/// What rules are written with: the ops, the kernels, and the Tensor overloads of kernels that are no ops of their own.
#pragma once

#include "autograd/kernels.hpp"
#include "autograd/ops.hpp"

namespace TAPEGRAD {

/// The value of either kind, for what carries no gradient (comparisons, say).
inline const Array& array_of(const Array& x) { return x; }
inline const Array& array_of(const Tensor& x) { return x.value(); }

// Axes are normalised.
Tensor reduce_sum(const Tensor& x, const Axes& axes, bool keepdim);
Tensor expand(const Tensor& dy, const Axes& axes, const Shape& shape);
Tensor softmax_backward(const Tensor& dy, const Tensor& y, int axis);
Tensor running_sum(const Tensor& x, int axis, bool reverse);
Tensor keep_triangle(const Tensor& x, int diagonal, bool lower);

}  // namespace TAPEGRAD
