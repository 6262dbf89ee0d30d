#include "autograd/kernels.hpp"
#include "autograd/kernels/loops.hpp"

namespace TAPEGRAD {
namespace {

/// How many elements back each axis of a row-major array reaches.
PoolVector<std::size_t> strides_of(const Shape& shape) {
  PoolVector<std::size_t> strides(shape.size());
  std::size_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
  return strides;
}

/// What a permutation walks: from x (a) to the result (b). Axes of extent 1 are left out, neighbours that stay
/// neighbours are one.
PoolVector<Loop> permuted_loops(const Shape& shape, const Axes& axes, const Shape& result_shape) {
  const PoolVector<std::size_t> from = strides_of(shape);
  const PoolVector<std::size_t> to = strides_of(result_shape);
  PoolVector<Loop> loops;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Loop next{result_shape[i], from[static_cast<std::size_t>(axes[i])], to[i]};
    if (next.extent == 1) continue;
    if (!loops.empty() && loops.back().a == next.a * next.extent) {
      loops.back() = {loops.back().extent * next.extent, next.a, next.b};
    } else {
      loops.push_back(next);
    }
  }
  return loops;
}

/// Writes a matrix whose rows are contiguous in `to` from one whose columns are contiguous in `from`, by tiles that fit
/// the cache.
void transpose_matrix(const Real* from, Real* to, const Loop& rows, const Loop& columns) {
  constexpr std::size_t kTile = 32;
  for (std::size_t row_tile = 0; row_tile < rows.extent; row_tile += kTile) {
    const std::size_t last_row = std::min(rows.extent, row_tile + kTile);
    for (std::size_t column_tile = 0; column_tile < columns.extent; column_tile += kTile) {
      const std::size_t last_column = std::min(columns.extent, column_tile + kTile);
      for (std::size_t row = row_tile; row < last_row; ++row) {
        const Real* source = from + row * rows.a;
        Real* target = to + row * rows.b;
        for (std::size_t column = column_tile; column < last_column; ++column) {
          target[column] = source[column * columns.a];
        }
      }
    }
  }
}

}  // namespace

Array reshape(Array x, const Shape& shape) {
  x.reshape(shape);
  return x;
}

Array permute(const Array& x, const Axes& axes) {
  Shape shape(x.dimension());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = x.shape()[static_cast<std::size_t>(axes[i])];
  Array result = empty_array(shape);
  if (result.size() == 0) return result;
  PoolVector<Loop> loops = permuted_loops(x.shape(), axes, shape);
  if (loops.empty()) loops.push_back({1, 1, 1});
  const Real* from = x.data();
  Real* to = result.data();
  const Loop last = loops.back();
  loops.pop_back();
  if (last.a == 1) {
    walk(loops, [&](std::size_t a, std::size_t b) { std::copy_n(from + a, last.extent, to + b); });
  } else {
    const auto contiguous = std::find_if(loops.begin(), loops.end(), [](const Loop& loop) { return loop.a == 1; });
    const Loop rows = *contiguous;
    loops.erase(contiguous);
    walk(loops, [&](std::size_t a, std::size_t b) { transpose_matrix(from + a, to + b, rows, last); });
  }
  return result;
}

Array slice(const Array& x, int axis, std::ptrdiff_t start, std::ptrdiff_t stop, std::ptrdiff_t step) {
  const AxisView view(x.shape(), static_cast<std::size_t>(axis));
  Shape shape = x.shape();
  const std::size_t count = slice_count(start, stop, step);
  shape[static_cast<std::size_t>(axis)] = count;
  Array result = empty_array(shape);
  if (result.size() == 0) return result;
  const std::size_t run = step == 1 ? count * view.inner : view.inner;
  const Real* from = x.data() + static_cast<std::size_t>(start) * view.inner;
  Real* to = result.data();
  for (std::size_t o = 0; o < view.outer; ++o, from += view.extent * view.inner) {
    for (std::size_t k = 0; k < count * view.inner; k += run, to += run) {
      std::copy_n(from + k * static_cast<std::size_t>(step), run, to);
    }
  }
  return result;
}

void add_at_slice(Array& to, int axis, std::ptrdiff_t start, std::ptrdiff_t step, const Array& x) {
  if (x.size() == 0) return;
  const AxisView view(to.shape(), static_cast<std::size_t>(axis));
  const std::size_t count = x.shape()[static_cast<std::size_t>(axis)];
  const std::size_t run = step == 1 ? count * view.inner : view.inner;
  const Real* from = x.data();
  Real* row = to.data() + static_cast<std::size_t>(start) * view.inner;
  for (std::size_t o = 0; o < view.outer; ++o, row += view.extent * view.inner) {
    for (std::size_t k = 0; k < count * view.inner; k += run, from += run) {
      Real* place = row + k * static_cast<std::size_t>(step);
      for (std::size_t i = 0; i < run; ++i) place[i] += from[i];
    }
  }
}

Array keep_triangle(const Array& x, int diagonal, bool lower) {
  Array result(x.shape(), Real(0));
  if (result.size() == 0) return result;
  const std::size_t rank = x.dimension();
  const auto columns = static_cast<std::ptrdiff_t>(x.shape()[rank - 1]);
  const auto rows = static_cast<std::ptrdiff_t>(x.shape()[rank - 2]);
  const Real* from = x.data();
  Real* to = result.data();
  const Real* end = from + x.size();
  while (from != end) {
    for (std::ptrdiff_t row = 0; row < rows; ++row, from += columns, to += columns) {
      const std::ptrdiff_t on_diagonal = row + diagonal;
      const std::ptrdiff_t first = lower ? 0 : std::clamp<std::ptrdiff_t>(on_diagonal, 0, columns);
      const std::ptrdiff_t last = lower ? std::clamp<std::ptrdiff_t>(on_diagonal + 1, 0, columns) : columns;
      std::copy(from + first, from + last, to + first);
    }
  }
  return result;
}

}  // namespace TAPEGRAD
