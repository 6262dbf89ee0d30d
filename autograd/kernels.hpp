/// Array functions: the loops that ops and their rules run on. They know no Tensor and no Tape.
///
/// Many have a Tensor overload of the same name, in ops.hpp or rules.hpp, so that one generic rule calls this one with
/// T = Array and records itself with T = Tensor. None has a name of xtensor's: argument-dependent lookup would find
/// xtensor's instead. Shapes and axes are checked by the ops; axes are normalised here (see shapes.hpp) unless said
/// otherwise.
#pragma once

#include "autograd/kernels/parallel.hpp"
#include "autograd/shapes.hpp"

namespace TAPEGRAD {

// ---- broadcasting and reductions ------------------------------------------------------------------------------------

/// a += b, equal shapes; can't throw.
void add_in_place(Array& a, const Array& b) noexcept;

Array broadcast_to(const Array& x, const Shape& shape);
Array sum_to(const Array& x, const Shape& shape);

Array reduce_sum(const Array& x, const Axes& axes, bool keepdim);
Array reduce_max(const Array& x, const Axes& axes, bool keepdim);  ///< NaN if there is one
/// The root of the sum of squares, none of which overflows or is lost.
Array reduce_norm(const Array& x, const Axes& axes, bool keepdim);
Array reduce_logsumexp(const Array& x, const Axes& axes, bool keepdim);

/// What a reduction over the axes left, repeated over them again to the shape from before; dy may have kept them or
/// not.
Array expand(const Array& dy, const Axes& axes, const Shape& shape);

/// result = f(a, b) for n elements, of which a and b may each be one that is repeated.
template <class A, class B, class Result, class F>
void apply_to_row(const A* a, bool a_moves, const B* b, bool b_moves, Result* result, std::size_t n, F f) {
  if (a_moves && b_moves) {
    for (std::size_t i = 0; i < n; ++i) result[i] = f(a[i], b[i]);
  } else if (a_moves) {
    for (std::size_t i = 0; i < n; ++i) result[i] = f(a[i], *b);
  } else if (b_moves) {
    for (std::size_t i = 0; i < n; ++i) result[i] = f(*a, b[i]);
  } else {
    std::fill_n(result, n, f(*a, *b));
  }
}

/// f(a, b) elementwise, broadcasting. Inner axes run as plain loops, whichever operand is repeated along them.
template <class Result, class F>
void broadcast_apply(const Shape& shape, const Shape& a_shape, const Shape& b_shape, const auto* a, const auto* b,
                     Result* result, F f) {
  if (element_count(shape) == 0) return;
  if (shape.empty()) {
    *result = f(*a, *b);
    return;
  }
  const Shape a_strides = broadcast_strides(a_shape, shape);
  const Shape b_strides = broadcast_strides(b_shape, shape);
  // Axes at the end that both walk without a gap, or that one of them stands still on, are one run.
  std::size_t inner = shape.back();
  std::size_t rank = shape.size() - 1;
  const bool a_moves = a_strides[rank] != 0;
  const bool b_moves = b_strides[rank] != 0;
  while (rank > 0 && a_strides[rank - 1] == (a_moves ? inner : 0) && b_strides[rank - 1] == (b_moves ? inner : 0)) {
    inner *= shape[--rank];
  }
  const std::size_t rows = element_count(shape) / inner;
  parallel_ranges(rows, inner, [&](std::size_t first, std::size_t last) {
    Shape at(rank, 0);  // of the row
    auto a_row = a;
    auto b_row = b;
    for (std::size_t axis = rank, left = first; axis-- > 0; left /= shape[axis]) {
      at[axis] = left % shape[axis];
      a_row += at[axis] * a_strides[axis];
      b_row += at[axis] * b_strides[axis];
    }
    for (std::size_t row = first; row < last; ++row) {
      apply_to_row(a_row, a_moves, b_row, b_moves, result + row * inner, inner, f);
      for (std::size_t axis = rank; axis-- > 0;) {
        a_row += a_strides[axis];
        b_row += b_strides[axis];
        if (++at[axis] < shape[axis]) break;
        a_row -= a_strides[axis] * shape[axis];
        b_row -= b_strides[axis] * shape[axis];
        at[axis] = 0;
      }
    }
  });
}

/// The same for arrays.
template <class F>
Array broadcast_apply(const Array& a, const Array& b, F f) {
  Array result = empty_array(broadcast_shape(a.shape(), b.shape(), "broadcast"));
  broadcast_apply(result.shape(), a.shape(), b.shape(), a.data(), b.data(), result.data(), f);
  return result;
}

// ---- masks ----------------------------------------------------------------------------------------------------------

/// f(a, b) as a Mask, broadcasting.
template <class F>
Mask compare(const Array& a, const Array& b, F f) {
  Mask result(broadcast_shape(a.shape(), b.shape(), "compare"));
  broadcast_apply(result.shape(), a.shape(), b.shape(), a.data(), b.data(), result.data(), f);
  return result;
}
/// f(x) as a Mask.
template <class F>
Mask mask_where(const Array& x, F f) {
  Mask result(x.shape());
  std::transform(x.data(), x.data() + x.size(), result.data(), f);
  return result;
}
Array keep_where(const Array& x, const Mask& mask);
Array ones_where(const Mask& mask);                              ///< 1 where true, else 0
Array select(const Mask& mask, const Array& a, const Array& b);  ///< a where true, else b

// ---- pointwise ------------------------------------------------------------------------------------------------------

Array sigmoid(const Array& x);
Array normal_cdf(const Array& x);   ///< the standard normal distribution function
Array gelu_values(const Array& x);  ///< x normal_cdf(x)
Array gelu_backward(const Array& dy, const Array& x);

// ---- along one axis -------------------------------------------------------------------------------------------------

Array softmax_values(const Array& x, std::size_t axis);
Array log_softmax_values(const Array& x, std::size_t axis);
/// y (dy - sum dy y), y the softmax.
Array softmax_backward(const Array& dy, const Array& y, int axis);
Array running_sum(const Array& x, int axis, bool reverse);

// ---- normalisation --------------------------------------------------------------------------------------------------

struct NormOptions {
  bool centred;  // whether a row's mean is subtracted first
  Real eps;      // added to the mean square that a row is divided by the root of
};
/// Rows of weight.size() elements, normalised, times weight, plus bias if there is one. Fills statistics (rows,3), for
/// the backward pass.
Array norm_values(const Array& x, const Array& weight, const Array* bias, const NormOptions& options,
                  Array& statistics);
/// Adds to the gradients that are not null; dx is written instead unless `add_to_dx`.
void norm_backward(const Array& dy, const Array& x, const Array& weight, const Array& statistics, bool centred,
                   Array* dx, bool add_to_dx, Array* dweight, Array* dbias);

// ---- losses ---------------------------------------------------------------------------------------------------------

struct ClassOptions {
  std::size_t axis;           // of the classes in the logits; the labels lack it
  std::int64_t ignore_index;  // labels that do not count; the others were checked
  Real smoothing;
  Real scale;  // of the losses, for the backward pass
};
/// A loss for each label, 0 for one that does not count. Fills statistics (labels,2), for the backward pass.
Array cross_entropy_values(const Array& logits, const Index& labels, const ClassOptions& options, Array& statistics);
/// Refuses a label that is neither ignore_index nor a class.
void require_labels(const Index& labels, std::size_t classes, std::int64_t ignore_index, const char* op);
/// Adds to dlogits. dy is the losses' gradient, or one number for all.
void cross_entropy_backward(const Array& dy, const Array& logits, const Index& labels, const Array& statistics,
                            const ClassOptions& options, Array& dlogits);

// ---- products -------------------------------------------------------------------------------------------------------

/// A matrix as it is stored, row after row `stride` apart, and whether to read it transposed.
struct Matrix {
  const Real* data;
  std::size_t stride;
  Transpose transpose;
};
struct GemmSize {
  std::size_t m, n, k;
};
/// out (m,n), its rows out_stride apart, becomes alpha op(a) op(b), op(a) (m,k) and op(b) (k,n), or is increased by it.
void gemm(const Matrix& a, const Matrix& b, Real* out, std::size_t out_stride, const GemmSize& size, Real alpha,
          bool add);

/// op(a) op(b) over broadcast batches, not yet computed, so that a product nobody wants costs nothing, and one that is
/// added to a gradient is added by the BLAS.
struct Product {
  const Array* a;
  const Array* b;
  Transpose transpose_a;
  Transpose transpose_b;
  Shape shape;  // of the full product

  /// Writes the product to `out`, or adds it. Batch axes that `out` lacks, or has with extent 1, are summed over.
  void fill(Array& out, bool add) const;
  Array evaluate() const;
};

/// Refuses factors that don't fit; both have at least two axes.
Product matmul(const Array& a, const Array& b, Transpose transpose_a, Transpose transpose_b);

// ---- convolution: as the ops of the same names ----------------------------------------------------------------------

/// How many windows fit along an axis. The window was checked.
inline std::size_t window_count(std::size_t extent, const Window& window) {
  const std::ptrdiff_t room = static_cast<std::ptrdiff_t>(extent) + 2 * window.padding - window.kernel;
  return static_cast<std::size_t>(room / window.stride) + 1;
}
Array unfold1d(const Array& x, const Window& window);
Array fold1d(const Array& columns, const Window& window, std::size_t extent);

// ---- attention ------------------------------------------------------------------------------------------------------

/// Softmax over the last axis among the elements that the mask (broadcast) keeps; exactly 0 elsewhere.
Array masked_softmax_values(const Array& scores, const Mask& mask);

/// Where the heads of attention's operands lie. Each operand is (batch, heads, length, width), or, with the heads side
/// by side in a row, (batch, length, heads width).
struct AttentionLayout {
  std::size_t batch, heads, queries, keys, width, value_width;
  bool heads_in_rows;
  bool causal;
  Real scale;
};

/// softmax(scale q k^T + additive) v, among the keys that mask and causality leave. Returns the output, in q's layout,
/// and fills log_sums (batch, heads, queries) with the logarithm of each row's sum of e^score. `additive` may be null.
Array attention_values(const AttentionLayout& layout, const Array& q, const Array& k, const Array& v, const Mask& mask,
                       const Array* additive, Array& log_sums);

/// Adds the gradients to those of dq, dk, dv and dadditive that are not null.
void attention_backward(const AttentionLayout& layout, const Array& y, const Array& dy, const Array& q, const Array& k,
                        const Array& v, const Mask& mask, const Array* additive, const Array& log_sums, Array* dq,
                        Array* dk, Array* dv, Array* dadditive);

// ---- shape, index and mask: as the ops of the same names ------------------------------------------------------------
// Positions are checked here, once, for the op and its adjoint.

Array reshape(Array x, const Shape& shape);
Array permute(const Array& x, const Axes& axes);
/// How many positions start, start + step, ... lie below stop; start <= stop.
inline std::size_t slice_count(std::ptrdiff_t start, std::ptrdiff_t stop, std::ptrdiff_t step) {
  return start == stop ? 0 : static_cast<std::size_t>((stop - start - 1) / step) + 1;
}
Array slice(const Array& x, int axis, std::ptrdiff_t start, std::ptrdiff_t stop, std::ptrdiff_t step);
Array index_select(const Array& x, int axis, const Index& index);
Array gather(const Array& x, int axis, const Index& index);
Array masked_select(const Array& x, const Mask& mask);  ///< the mask has x's shape
Array masked_scatter(const Array& x, const Mask& mask);
/// Adds x to `to` at the places that slice, index_select and gather would take; not at the position `skipped`.
void add_at_slice(Array& to, int axis, std::ptrdiff_t start, std::ptrdiff_t step, const Array& x);
void add_at_index(Array& to, int axis, const Index& index, const Array& x, std::int64_t skipped = -1);
void add_at_gather(Array& to, int axis, const Index& index, const Array& x);
/// Elements on the kept side of a diagonal of the last two axes; zeros elsewhere.
Array keep_triangle(const Array& x, int diagonal, bool lower);

}  // namespace TAPEGRAD
