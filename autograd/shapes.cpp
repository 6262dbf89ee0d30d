#include "autograd/shapes.hpp"

namespace TAPEGRAD {

std::size_t normalize_axis(int axis, std::size_t rank, std::string_view op) {
  const int signed_rank = static_cast<int>(rank);
  require(axis >= -signed_rank && axis < signed_rank, op, "the axis must be at least -rank and below the rank", axis,
          rank);
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

Axes normalize_axes(const Axes& axes, std::size_t rank, std::string_view op) {
  PoolVector<int> all;
  for (std::size_t i = 0; axes.size() == 0 && i < rank; ++i) all.push_back(static_cast<int>(i));
  for (int axis : axes) all.push_back(static_cast<int>(normalize_axis(axis, rank, op)));
  require(all.size() <= Axes::kMost, op, "at most 8 axes can be taken at once", all.size());
  std::sort(all.begin(), all.end());
  const auto repeated = std::adjacent_find(all.begin(), all.end());
  require(repeated == all.end(), op, "an axis may be listed once", repeated == all.end() ? 0 : *repeated);
  return Axes(all.data(), all.size());
}

Shape broadcast_shape(const Shape& a, const Shape& b, std::string_view op) {
  if (a == b) return a;
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t lead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    const std::size_t x = longer[lead + i];
    const std::size_t y = shorter[i];
    require(x == y || x == 1 || y == 1, op, "the shapes must broadcast: equal from the right, or 1", a, b);
    result[lead + i] = x == 1 ? y : x;
  }
  return result;
}

void require_size(const Shape& shape, std::string_view op) {
  // Without the zeros, so that products of some of the extents can't overflow either.
  std::size_t bytes = sizeof(Real);
  for (std::size_t extent : shape) {
    const bool overflow = extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes);
    require(!overflow && bytes <= PTRDIFF_MAX, op, "the array would be too large", shape);
  }
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t lead = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[lead + i] && from[i] != 1) return false;
  }
  return true;
}

Shape reduced_shape(const Shape& shape, const Axes& axes, bool keepdim) {
  Shape result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = next < axes.size() && static_cast<std::size_t>(axes[next]) == i;
    next += reduced;
    if (!reduced) result.push_back(shape[i]);
    if (reduced && keepdim) result.push_back(1);
  }
  return result;
}

Shape broadcast_strides(const Shape& from, const Shape& to) {
  Shape strides(to.size(), 0);
  std::size_t stride = 1;
  for (std::size_t i = from.size(); i-- > 0;) {
    if (from[i] != 1) strides[to.size() - from.size() + i] = stride;
    stride *= from[i];
  }
  return strides;
}

}  // namespace TAPEGRAD
