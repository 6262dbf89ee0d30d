#include <cmath>
#include <limits>

#include "autograd/kernels.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

// A sum in Real over at most this many terms, then in double over the blocks: right to the last bits at any length.
constexpr std::size_t kBlock = 64;

struct Add {
  static constexpr Real kStart = 0;
  static Real combine(Real a, Real b) { return a + b; }
};
struct Max {
  static constexpr Real kStart = -std::numeric_limits<Real>::infinity();
  static Real combine(Real a, Real b) { return b > a || b != b ? b : a; }  // NaN wins, and stays
};
double combine_blocks(Add, double a, double b) { return a + b; }
double combine_blocks(Max, double a, double b) { return b > a || b != b ? b : a; }

constexpr std::size_t kLanes = 64 / sizeof(Real);

/// Reduces n consecutive numbers, several lanes side by side.
template <class Op>
Real reduce_run(const Real* x, std::size_t n) {
  if constexpr (std::is_same_v<Op, Max>) return simd::max(x, n);
  double total = Op::kStart;
  while (n >= kLanes) {
    const std::size_t rows = std::min(n / kLanes, kBlock);
    Real lanes[kLanes];
    std::fill_n(lanes, kLanes, Op::kStart);
    for (std::size_t row = 0; row < rows; ++row, x += kLanes) {
      for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = Op::combine(lanes[i], x[i]);
    }
    for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) lanes[i] = Op::combine(lanes[i], lanes[i + half]);
    }
    total = combine_blocks(Op(), total, lanes[0]);
    n -= rows * kLanes;
  }
  Real rest = Op::kStart;
  for (std::size_t i = 0; i < n; ++i) rest = Op::combine(rest, x[i]);
  return static_cast<Real>(combine_blocks(Op(), total, rest));
}

/// Reduces n rows of `width` numbers, `stride` apart, to one row.
template <class Op>
void reduce_rows(const Real* x, std::size_t n, std::size_t width, std::size_t stride, Real* out) {
  constexpr std::size_t kWidth = 256;
  parallel_for((width + kWidth - 1) / kWidth, n * width >= kParallel, [=](std::size_t strip) {
    Real block[kWidth];
    double total[kWidth];
    const std::size_t from = strip * kWidth;
    const std::size_t count = std::min(kWidth, width - from);
    std::fill_n(total, count, static_cast<double>(Op::kStart));
    for (std::size_t first = 0; first < n; first += kBlock) {
      std::fill_n(block, count, Op::kStart);
      const std::size_t last = std::min(n, first + kBlock);
      for (std::size_t row = first; row < last; ++row) {
        const Real* from_row = x + row * stride + from;
        for (std::size_t i = 0; i < count; ++i) block[i] = Op::combine(block[i], from_row[i]);
      }
      for (std::size_t i = 0; i < count; ++i) total[i] = combine_blocks(Op(), total[i], block[i]);
    }
    for (std::size_t i = 0; i < count; ++i) out[from + i] = static_cast<Real>(total[i]);
  });
}

/// Reduces one run of neighbouring axes after the other, the last first; reduced axes keep extent 1 meanwhile.
template <class Op>
Array reduce(const Array& x, const Axes& axes, bool keepdim) {
  Shape shape = x.shape();
  const Array* from = &x;
  Array result;
  for (std::size_t end = axes.size(); end > 0;) {
    std::size_t begin = end - 1;
    while (begin > 0 && axes[begin - 1] + 1 == axes[begin]) --begin;
    std::size_t outer = 1, extent = 1, inner = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const int axis = static_cast<int>(i);
      (axis < axes[begin] ? outer : axis > axes[end - 1] ? inner : extent) *= shape[i];
    }
    for (std::size_t i = begin; i < end; ++i) shape[static_cast<std::size_t>(axes[i])] = 1;
    Array next = empty_array(shape);
    parallel_ranges(outer, extent * inner,
                    [&, x = from->data(), to = next.data()](std::size_t first, std::size_t last) {
                      for (std::size_t o = first; o < last; ++o) {
                        const Real* run = x + o * extent * inner;
                        if (inner == 1) {
                          to[o] = reduce_run<Op>(run, extent);
                        } else {
                          reduce_rows<Op>(run, extent, inner, inner, to + o * inner);
                        }
                      }
                    });
    result = std::move(next);
    from = &result;
    end = begin;
  }
  if (axes.size() == 0) result = x;
  if (!keepdim) result.reshape(reduced_shape(x.shape(), axes, false));
  return result;
}

}  // namespace

void add_in_place(Array& a, const Array& b) noexcept {
  Real* to = a.data();
  const Real* from = b.data();
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) to[i] += from[i];
}

Array broadcast_to(const Array& x, const Shape& shape) {
  Array result = empty_array(shape);
  const Real nothing = 0;
  broadcast_apply(shape, x.shape(), Shape{}, x.data(), &nothing, result.data(), [](Real from, Real) { return from; });
  return result;
}

Array sum_to(const Array& x, const Shape& shape) {
  require(broadcasts_to(shape, x.shape()), "sum_to",
          "the gradient's shape must be one that the operand's broadcasts to", x.shape(), shape);
  const std::size_t lead = x.dimension() - shape.size();
  PoolVector<int> axes;
  for (std::size_t i = 0; i < x.dimension(); ++i) {
    if (i < lead || shape[i - lead] != x.shape()[i]) axes.push_back(static_cast<int>(i));
  }
  Array result = reduce<Add>(x, Axes(axes.data(), axes.size()), true);
  result.reshape(shape);
  return result;
}

Array reduce_sum(const Array& x, const Axes& axes, bool keepdim) { return reduce<Add>(x, axes, keepdim); }
Array reduce_max(const Array& x, const Axes& axes, bool keepdim) { return reduce<Max>(x, axes, keepdim); }

Array expand(const Array& dy, const Axes& axes, const Shape& shape) {
  Array kept = dy;
  kept.reshape(reduced_shape(shape, axes, true));
  return broadcast_to(kept, shape);
}

Array reduce_norm(const Array& x, const Axes& axes, bool keepdim) {
  // Squares of what the elements are to the largest; to 1 where all are 0 or one is infinite or NaN.
  Array largest = reduce_max(Array(xt::abs(x)), axes, true);
  for (Real& top : largest.storage()) top = top > 0 && std::isfinite(top) ? top : Real(1);
  const auto square_of_share = [](Real value, Real top) { return (value / top) * (value / top); };
  Array result = reduce_sum(broadcast_apply(x, largest, square_of_share), axes, true);
  result = broadcast_apply(result, largest, [](Real sum, Real top) { return std::sqrt(sum) * top; });
  if (!keepdim) result.reshape(reduced_shape(x.shape(), axes, false));
  return result;
}

Array reduce_logsumexp(const Array& x, const Axes& axes, bool keepdim) {
  const Array largest = reduce_max(x, axes, true);
  const auto shifted_exp = [](Real value, Real top) { return std::exp(value - (std::isfinite(top) ? top : Real(0))); };
  Array result = reduce_sum(broadcast_apply(x, largest, shifted_exp), axes, true);
  const auto log_plus_top = [](Real sum, Real top) { return std::log(sum) + (std::isfinite(top) ? top : Real(0)); };
  result = broadcast_apply(result, largest, log_plus_top);
  if (!keepdim) result.reshape(reduced_shape(x.shape(), axes, false));
  return result;
}

}  // namespace TAPEGRAD
