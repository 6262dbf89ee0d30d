#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

/// reshape in the name of the op that found the shape.
Tensor reshaped(const char* op, const Tensor& x, const Shape& shape) {
  return record(
      op, Tensor(reshape(x.value(), shape)),
      []<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += reshape(dy, dx.shape()); }, x);
}

/// permute in the name of the op that found the axes, which are plain here.
Tensor permuted(const char* op, const Tensor& x, const Axes& axes) {
  Axes inverse = axes;
  for (std::size_t i = 0; i < axes.size(); ++i) inverse[static_cast<std::size_t>(axes[i])] = static_cast<int>(i);
  return record(
      op, Tensor(permute(x.value(), axes)),
      [inverse]<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += permute(dy, inverse); }, x);
}

/// The shape with one more axis, there.
Shape with_axis(const Shape& shape, std::size_t axis, std::size_t extent) {
  Shape result;
  for (std::size_t i = 0; i <= shape.size(); ++i) {
    if (i == axis) result.push_back(extent);
    if (i < shape.size()) result.push_back(shape[i]);
  }
  return result;
}

/// "(2,6) to (3,-1)", for refusals.
std::string attempt(const Shape& from, const Extents& to) {
  std::string text = to_text(from) + " to (";
  const char* separator = "";
  for (const std::ptrdiff_t extent : to.values) {
    text.append(separator).append(std::to_string(extent));
    separator = ",";
  }
  return text.append(")");
}

/// A position as Python's slices take it, moved into 0 ... extent.
std::ptrdiff_t slice_position(std::ptrdiff_t position, std::size_t extent) {
  const auto n = static_cast<std::ptrdiff_t>(extent);
  return std::clamp<std::ptrdiff_t>(position < 0 ? position + n : position, 0, n);
}

struct Positions {
  Positions(std::ptrdiff_t start, std::ptrdiff_t stop, std::ptrdiff_t step, std::size_t extent, const char* op)
      : start(slice_position(start, extent)), stop(std::max(this->start, slice_position(stop, extent))), step(step) {
    require(step >= 1, op, "the step must be at least 1", step);
  }
  std::ptrdiff_t start;
  std::ptrdiff_t stop;
  std::ptrdiff_t step;
};

/// dx += unslice(dy): where dx is an array, without an array of zeros for each slice.
void add_slice(const Sink<Array>& dx, int axis, const Positions& at, const Array& dy) {
  if (Array* sum = dx.buffer()) add_at_slice(*sum, axis, at.start, at.step, dy);
}
void add_slice(const Sink<Tensor>& dx, int axis, const Positions& at, const Tensor& dy) {
  if (dx) dx += unslice(dy, axis, at.start, at.stop, at.step, dx.shape());
}

}  // namespace

Tensor reshape(const Tensor& x, const Extents& shape) {
  Shape result;
  std::size_t known = 1;
  bool fits = true;
  std::ptrdiff_t unknown = -1;
  for (const std::ptrdiff_t extent : shape.values) {
    if (extent == -1 && unknown < 0) {
      unknown = static_cast<std::ptrdiff_t>(result.size());
      result.push_back(1);
    } else {
      fits = fits && extent >= 0 && !__builtin_mul_overflow(known, static_cast<std::size_t>(extent), &known);
      result.push_back(static_cast<std::size_t>(extent));
    }
  }
  if (unknown >= 0) {
    if (known == 0) refuse("reshape", "-1 can't be found beside an extent of 0", attempt(x.shape(), shape));
    fits = fits && x.size() % known == 0;
    result[static_cast<std::size_t>(unknown)] = x.size() / known;
  } else {
    fits = fits && x.size() == known;
  }
  if (!fits) refuse("reshape", "the shapes must hold equally many elements", attempt(x.shape(), shape));
  return reshaped("reshape", x, result);
}

Tensor permute(const Tensor& x, Axes axes) {
  require(axes.size() == x.rank(), "permute", "each axis must be listed", axes.size(), x.shape());
  if (axes.size() > 0) normalize_axes(axes, x.rank(), "permute");  // refuses repeats
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i] = static_cast<int>(normalize_axis(axes[i], x.rank(), "permute"));
  }
  return permuted("permute", x, axes);
}

Tensor transpose(const Tensor& x, int axis0, int axis1) {
  std::vector<int> axes(x.rank());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  std::swap(axes[normalize_axis(axis0, x.rank(), "transpose")], axes[normalize_axis(axis1, x.rank(), "transpose")]);
  return permuted("transpose", x, axes);
}

Tensor unsqueeze(const Tensor& x, int axis) {
  const std::size_t at = normalize_axis(axis, x.rank() + 1, "unsqueeze");
  return reshaped("unsqueeze", x, with_axis(x.shape(), at, 1));
}

Tensor squeeze(const Tensor& x, int axis) {
  const std::size_t at = normalize_axis(axis, x.rank(), "squeeze");
  require(x.shape()[at] == 1, "squeeze", "the axis must have extent 1", axis, x.shape());
  return reshaped("squeeze", x, reduced_shape(x.shape(), static_cast<int>(at), false));
}

Tensor repeat(const Tensor& x, const std::vector<std::size_t>& repeats) {
  require(repeats.size() >= x.rank(), "repeat", "there must be at least as many repeats as axes", repeats.size(),
          x.shape());
  // A repeat is a new axis before the one it repeats, over which x is broadcast.
  const std::size_t lead = repeats.size() - x.rank();
  Shape split, wide, result;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const std::size_t extent = i < lead ? 1 : x.shape()[i - lead];
    if (repeats[i] != 1) {
      split.push_back(1);
      wide.push_back(repeats[i]);
    }
    split.push_back(extent);
    wide.push_back(extent);
    result.push_back(repeats[i] * extent);
  }
  require_size(wide, "repeat");
  return reshaped("repeat", broadcast_to(reshaped("repeat", x, split), wide), result);
}

Tensor repeat_interleave(const Tensor& x, std::size_t repeats, int axis) {
  const std::size_t at = normalize_axis(axis, x.rank(), "repeat_interleave");
  const Shape wide = with_axis(x.shape(), at + 1, repeats);
  require_size(wide, "repeat_interleave");
  Shape result = x.shape();
  result[at] *= repeats;
  Array y = broadcast_to(reshape(x.value(), with_axis(x.shape(), at + 1, 1)), wide);
  y.reshape(result);
  return record(
      "repeat_interleave", std::move(y),
      [at, repeats]<class T>(Unread, const T& dy, Unread, Sink<T> dx) {
        const T repeated = reshape(dy, with_axis(dx.shape(), at + 1, repeats));
        dx += reduce_sum(repeated, static_cast<int>(at) + 1, false);
      },
      x);
}

Tensor repeat_interleave(const Tensor& x, std::size_t repeats) {
  return repeat_interleave(reshaped("repeat_interleave", x, Shape{x.size()}), repeats, 0);
}

Tensor concat(const std::vector<Tensor>& xs, int axis) {
  require(!xs.empty(), "concat", "there must be a Tensor to put together");
  const Shape& first = xs[0].shape();
  const std::size_t at = normalize_axis(axis, first.size(), "concat");
  Shape shape = first;
  Index ends(Shape{xs.size()});  // where each x ends along the axis
  std::size_t end = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    shape[at] = xs[i].rank() == first.size() ? xs[i].shape()[at] : 0;
    require(xs[i].shape() == shape, "concat", "the shapes must be equal but for the axis", first, xs[i].shape());
    end += shape[at];
    ends.data()[i] = static_cast<std::int64_t>(end);
  }
  shape[at] = end;
  require_size(shape, "concat");
  Array y = empty_array(shape);
  const AxisView view(shape, at);
  Real* column = y.data();
  for (const Tensor& x : xs) {
    if (x.size() == 0) continue;
    const std::size_t run = x.shape()[at] * view.inner;
    for (std::size_t o = 0; o < view.outer; ++o) {
      std::copy_n(x.value().data() + o * run, run, column + o * view.extent * view.inner);
    }
    column += run;
  }
  const int plain = static_cast<int>(at);
  return record(
      "concat", Tensor(std::move(y)),
      [plain]<class T>(Unread, const T& dy, Unread, const Index& ends, const Sinks<T>& dxs) {
        std::ptrdiff_t start = 0;
        for (std::size_t i = 0; i < dxs.size(); ++i) {
          const std::ptrdiff_t stop = ends.data()[i];
          if (dxs[i]) dxs[i] += slice(dy, plain, start, stop, 1);
          start = stop;
        }
      },
      xs, ends);
}

Tensor stack(const std::vector<Tensor>& xs, int axis) {
  require(!xs.empty(), "stack", "there must be a Tensor to put together");
  const int at = static_cast<int>(normalize_axis(axis, xs[0].rank() + 1, "stack"));
  std::vector<Tensor> layers;
  for (const Tensor& x : xs) {
    require(x.shape() == xs[0].shape(), "stack", "the shapes must be equal", xs[0].shape(), x.shape());
    layers.push_back(unsqueeze(x, at));
  }
  return concat(layers, at);
}

Tensor slice(const Tensor& x, int axis, std::ptrdiff_t start, std::ptrdiff_t stop, std::ptrdiff_t step) {
  const int plain = static_cast<int>(normalize_axis(axis, x.rank(), "slice"));
  const Positions at(start, stop, step, x.extent(plain), "slice");
  return record(
      "slice", Tensor(slice(x.value(), plain, at.start, at.stop, at.step)),
      [plain, at]<class T>(Unread, const T& dy, Unread, Sink<T> dx) { add_slice(dx, plain, at, dy); }, x);
}

Tensor unslice(const Tensor& x, int axis, std::ptrdiff_t start, std::ptrdiff_t stop, std::ptrdiff_t step,
               const Shape& shape) {
  const std::size_t plain = normalize_axis(axis, shape.size(), "unslice");
  const Positions at(start, stop, step, shape[plain], "unslice");
  Shape taken = shape;
  taken[plain] = slice_count(at.start, at.stop, at.step);
  require(x.shape() == taken, "unslice", "x must have the shape that slice would give", x.shape(), taken);
  require_size(shape, "unslice");
  Array y(shape, Real(0));
  add_at_slice(y, static_cast<int>(plain), at.start, at.step, x.value());
  return record(
      "unslice", Tensor(std::move(y)),
      [plain, at]<class T>(Unread, const T& dy, Unread, Sink<T> dx) {
        dx += slice(dy, static_cast<int>(plain), at.start, at.stop, at.step);
      },
      x);
}

Tensor keep_triangle(const Tensor& x, int diagonal, bool lower) {
  const char* op = lower ? "tril" : "triu";
  require(x.rank() >= 2, op, "there must be two axes at least", x.shape());
  return record(
      op, Tensor(keep_triangle(x.value(), diagonal, lower)),
      [diagonal, lower]<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += keep_triangle(dy, diagonal, lower); },
      x);
}

Tensor tril(const Tensor& x, int diagonal) { return keep_triangle(x, diagonal, true); }
Tensor triu(const Tensor& x, int diagonal) { return keep_triangle(x, diagonal, false); }

}  // namespace TAPEGRAD
