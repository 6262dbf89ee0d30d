/// What ops take besides arrays, and shapes: made plain once, so that kernels see only sorted, non-negative axes.
#pragma once

#include "autograd/mask.hpp"

namespace TAPEGRAD {

/// A list of axes, such as `1` or `{0, -1}`: at most 8. Trivially copyable, so that rules may capture it.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : Axes({axis}) {}
  Axes(std::initializer_list<int> axes) : Axes(axes.begin(), axes.size()) {}
  Axes(const std::vector<int>& axes) : Axes(axes.data(), axes.size()) {}
  Axes(const int* axes, std::size_t count) : count_(static_cast<int>(count)) {
    require(count <= kMost, "Axes", "an op takes at most 8 axes", count);
    std::copy_n(axes, count, axes_);
  }
  std::size_t size() const { return static_cast<std::size_t>(count_); }
  int operator[](std::size_t i) const { return axes_[i]; }
  int& operator[](std::size_t i) { return axes_[i]; }
  const int* begin() const { return axes_; }
  const int* end() const { return axes_ + count_; }

  static constexpr std::size_t kMost = 8;

 private:
  int count_ = 0;
  int axes_[kMost] = {};
};

/// Whether a matrix factor is transposed (its last two axes swapped) before the product.
enum class Transpose { no, yes };

/// How a kernel slides along an axis that has `padding` zeros put before and after it.
struct Window {
  std::ptrdiff_t kernel;
  std::ptrdiff_t stride = 1;
  std::ptrdiff_t padding = 0;
};

/// The axis counted from the front; refuses one that an array of that rank does not have.
std::size_t normalize_axis(int axis, std::size_t rank, std::string_view op);

/// The axes counted from the front and in ascending order; all of them when none is listed. Refuses repeats.
Axes normalize_axes(const Axes& axes, std::size_t rank, std::string_view op);

/// The shape that both broadcast to; refuses shapes that do not.
Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op);

/// Refuses the shape of an array that no memory could hold.
void require_size(const Shape& shape, std::string_view op);

/// Whether `from` can be repeated along axes of extent 1, and new leading ones, to become `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

/// The shape after reducing the axes (normalised).
Shape reduced_shape(const Shape& shape, const Axes& axes, bool keepdim);

/// A shape seen from one axis: outer x extent x inner elements.
struct AxisView {
  AxisView(const Shape& shape, std::size_t axis) : extent(shape[axis]) {
    for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  }
  std::size_t outer = 1;
  std::size_t extent;
  std::size_t inner = 1;
};

/// For each axis of `to`, how far a step along it moves in a row-major array of shape `from`: 0 where it is repeated.
Shape broadcast_strides(const Shape& from, const Shape& to);

}  // namespace TAPEGRAD
