#include <limits>

#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

std::size_t reduced_count(const Shape& shape, const Axes& axes) {
  std::size_t count = 1;
  for (int axis : axes) count *= shape[static_cast<std::size_t>(axis)];
  return count;
}

/// Where x equals what the reduction over the axes left of it.
Mask hits(const Array& x, const Array& y, const Axes& axes) {
  const auto equal = [](Real a, Real b) { return a == b || (a != a && b != b); };
  return compare(x, expand(y, axes, x.shape()), equal);
}

/// y with 0 instead of -inf: what to subtract where there is nothing but -inf.
template <class T>
T shift_of(const T& y) {
  constexpr Real kLowest = -std::numeric_limits<Real>::infinity();
  return T(keep_where(y, mask_where(array_of(y), [](Real v) { return v != kLowest; })));
}

}  // namespace

// The Tensor overloads that rules call.
Tensor reduce_sum(const Tensor& x, const Axes& axes, bool keepdim) {
  return record(
      "sum", Tensor(reduce_sum(x.value(), axes, keepdim)),
      [axes]<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += expand(dy, axes, dx.shape()); }, x);
}

Tensor expand(const Tensor& dy, const Axes& axes, const Shape& shape) {
  const bool kept = dy.rank() == shape.size();
  return record(
      "expand", Tensor(expand(dy.value(), axes, shape)),
      [axes, kept]<class T>(Unread, const T& ddy, Unread, Sink<T> d) { d += reduce_sum(ddy, axes, kept); }, dy);
}

Tensor sum(const Tensor& x, Axes axes, bool keepdim) {
  return reduce_sum(x, normalize_axes(axes, x.rank(), "sum"), keepdim);
}

Tensor mean(const Tensor& x, Axes axes, bool keepdim) {
  axes = normalize_axes(axes, x.rank(), "mean");
  return reduce_sum(x, axes, keepdim) / static_cast<Real>(reduced_count(x.shape(), axes));
}

Tensor var(const Tensor& x, Axes axes, Real correction, bool keepdim) {
  axes = normalize_axes(axes, x.rank(), "var");
  const Real count = static_cast<Real>(reduced_count(x.shape(), axes));
  const Tensor centred = x - reduce_sum(x, axes, true) / count;
  return reduce_sum(square(centred), axes, keepdim) / (count > correction ? count - correction : Real(0));
}

Tensor amax(const Tensor& x, Axes axes, bool keepdim) {
  axes = normalize_axes(axes, x.rank(), "amax");
  require(reduced_count(x.shape(), axes) > 0, "amax", "there must be an element to take", x.shape());
  return record(
      "amax", Tensor(reduce_max(x.value(), axes, keepdim)),
      [axes]<class T>(const T& y, const T& dy, const T& x, Sink<T> dx) {
        const Mask hit = hits(array_of(x), array_of(y), axes);
        const T count = T(reduce_sum(ones_where(hit), axes, true));
        dx += keep_where(T(expand(dy, axes, dx.shape()) / count), hit);
      },
      x);
}

Tensor amin(const Tensor& x, Axes axes, bool keepdim) {
  axes = normalize_axes(axes, x.rank(), "amin");
  require(reduced_count(x.shape(), axes) > 0, "amin", "there must be an element to take", x.shape());
  return -amax(-x, axes, keepdim);
}

Tensor logsumexp(const Tensor& x, Axes axes, bool keepdim) {
  axes = normalize_axes(axes, x.rank(), "logsumexp");
  return record(
      "logsumexp", Tensor(reduce_logsumexp(x.value(), axes, keepdim)),
      [axes]<class T>(const T& y, const T& dy, const T& x, Sink<T> dx) {
        const T softmax = T(exp(x - expand(shift_of(y), axes, dx.shape())));
        dx += expand(dy, axes, dx.shape()) * softmax;
      },
      x);
}

Tensor prod(const Tensor& x, int axis, bool keepdim) {
  const int at = static_cast<int>(normalize_axis(axis, x.rank(), "prod"));
  // Halves are multiplied until one slice is left: no division, so zeros need no care, and the depth is log n.
  Tensor rest = x;
  std::ptrdiff_t n = static_cast<std::ptrdiff_t>(x.extent(at));
  if (n == 0) rest = ones(reduced_shape(x.shape(), at, true)) + sum(x, at, true);
  for (; n > 1; n = (n + 1) / 2) {
    const Tensor pairs = slice(rest, at, 0, n / 2) * slice(rest, at, n / 2, n / 2 * 2);
    rest = n % 2 ? concat({pairs, slice(rest, at, n - 1, n)}, at) : pairs;
  }
  return keepdim ? rest : squeeze(rest, at);
}

Tensor norm(const Tensor& x, Axes axes, bool keepdim) {
  axes = normalize_axes(axes, x.rank(), "norm");
  return record(
      "norm", Tensor(reduce_norm(x.value(), axes, keepdim)),
      [axes]<class T>(const T& y, const T& dy, const T& x, Sink<T> dx) {
        // x / y, but 0 where y is 0: there a constant 1 stands in for it.
        const Mask some = mask_where(array_of(y), [](Real v) { return v != 0; });
        const T length = y + T(ones_where(!some));
        dx += expand(T(keep_where(dy, some)), axes, dx.shape()) * (x / expand(length, axes, dx.shape()));
      },
      x);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  require(broadcasts_to(x.shape(), shape), "broadcast_to", "the shape must be one that x broadcasts to", x.shape(),
          shape);
  require_size(shape, "broadcast_to");
  return record(
      "broadcast_to", Tensor(broadcast_to(x.value(), shape)),
      []<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += sum_to(dy, dx.shape()); }, x);
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  return record(
      "sum_to", Tensor(sum_to(x.value(), shape)),
      []<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += broadcast_to(dy, dx.shape()); }, x);
}

Index argmax(const Tensor& x, int axis, bool keepdim) {
  const std::size_t at = normalize_axis(axis, x.rank(), "argmax");
  const AxisView view(x.shape(), at);
  require(view.extent > 0, "argmax", "the axis must not be empty", x.shape());
  Index result(reduced_shape(x.shape(), static_cast<int>(at), keepdim));
  std::int64_t* out = result.data();
  for (std::size_t o = 0; o < view.outer; ++o) {
    for (std::size_t i = 0; i < view.inner; ++i) {
      const Real* column = x.value().data() + o * view.extent * view.inner + i;
      std::size_t best = 0;
      for (std::size_t k = 1; k < view.extent; ++k) {
        const Real leader = column[best * view.inner];
        const Real candidate = column[k * view.inner];
        if (leader != leader) break;
        if (candidate > leader || candidate != candidate) best = k;
      }
      *out++ = static_cast<std::int64_t>(best);
    }
  }
  return result;
}

}  // namespace TAPEGRAD
