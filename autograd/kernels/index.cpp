#include "autograd/kernels.hpp"
#include "autograd/kernels/loops.hpp"

namespace TAPEGRAD {
namespace {

void require_positions(const Index& index, std::size_t extent, const char* op) {
  for (const std::int64_t position : index) {
    require(position >= 0 && static_cast<std::uint64_t>(position) < extent, op,
            "a position must be at least 0 and below the axis's extent", position, extent);
  }
}

/// f(offset in index, offset in x) for every place that gather reads.
template <class F>
void walk_gathered(const Shape& x_shape, int axis, const Index& index, const F& f) {
  const std::size_t rank = x_shape.size();
  PoolVector<Loop> loops(rank);
  std::size_t index_stride = 1;
  std::size_t x_stride = 1;
  std::size_t axis_stride = 1;
  for (std::size_t i = rank; i-- > 0;) {
    const bool gathered = i == static_cast<std::size_t>(axis);
    if (gathered) axis_stride = x_stride;
    loops[i] = {index.shape()[i], index_stride, gathered ? 0 : x_stride};
    index_stride *= index.shape()[i];
    x_stride *= x_shape[i];
  }
  if (index.size() == 0) return;
  const Loop last = loops.back();
  loops.pop_back();
  walk(loops, [&](std::size_t at_index, std::size_t at_x) {
    for (std::size_t i = 0; i < last.extent; ++i, ++at_index, at_x += last.b) {
      f(at_index, at_x + static_cast<std::size_t>(index.data()[at_index]) * axis_stride);
    }
  });
}

}  // namespace

Array index_select(const Array& x, int axis, const Index& index) {
  const AxisView view(x.shape(), static_cast<std::size_t>(axis));
  require_positions(index, view.extent, "index_select");
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(axis)] = index.size();
  Array result = empty_array(shape);
  if (result.size() == 0) return result;
  const Real* from = x.data();
  Real* to = result.data();
  for (std::size_t o = 0; o < view.outer; ++o, from += view.extent * view.inner) {
    for (const std::int64_t position : index) {
      to = std::copy_n(from + static_cast<std::size_t>(position) * view.inner, view.inner, to);
    }
  }
  return result;
}

void add_at_index(Array& to, int axis, const Index& index, const Array& x, std::int64_t skipped) {
  const AxisView view(to.shape(), static_cast<std::size_t>(axis));
  require_positions(index, view.extent, "index_add");
  if (x.size() == 0) return;
  const Real* from = x.data();
  Real* slab = to.data();
  for (std::size_t o = 0; o < view.outer; ++o, slab += view.extent * view.inner) {
    for (const std::int64_t position : index) {
      Real* place = slab + static_cast<std::size_t>(position) * view.inner;
      for (std::size_t i = 0; i < view.inner && position != skipped; ++i) place[i] += from[i];
      from += view.inner;
    }
  }
}

Array gather(const Array& x, int axis, const Index& index) {
  require_positions(index, x.shape()[static_cast<std::size_t>(axis)], "gather");
  Array result = empty_array(index.shape());
  const Real* from = x.data();
  Real* to = result.data();
  walk_gathered(x.shape(), axis, index, [&](std::size_t at_index, std::size_t at_x) { to[at_index] = from[at_x]; });
  return result;
}

void add_at_gather(Array& to, int axis, const Index& index, const Array& x) {
  require_positions(index, to.shape()[static_cast<std::size_t>(axis)], "scatter_add");
  const Real* from = x.data();
  Real* sum = to.data();
  walk_gathered(to.shape(), axis, index, [&](std::size_t at_index, std::size_t at_x) { sum[at_x] += from[at_index]; });
}

Array masked_select(const Array& x, const Mask& mask) {
  Array result = empty_array(Shape{count_true(mask)});
  const Real* from = x.data();
  Real* to = result.data();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask.data()[i]) *to++ = from[i];
  }
  return result;
}

Array masked_scatter(const Array& x, const Mask& mask) {
  const std::size_t count = count_true(mask);
  require(x.size() == count, "masked_scatter", "x must have as many elements as the mask has true ones", x.size(),
          count);
  Array result = empty_array(mask.shape());
  const Real* from = x.data();
  Real* to = result.data();
  for (std::size_t i = 0; i < mask.size(); ++i) to[i] = mask.data()[i] ? *from++ : Real(0);
  return result;
}

}  // namespace TAPEGRAD
