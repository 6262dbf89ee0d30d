#include "autograd/kernels.hpp"

namespace TAPEGRAD {
namespace {

/// Calls f(row of x, row of columns, first, last) for each channel and place in the kernel: the windows first ...
/// last-1 read the row of x there, window l at offset + l stride; the others read padding.
template <class F>
void for_rows(std::size_t rows, std::size_t extent, std::size_t windows, const Window& window, F f) {
  const auto n = static_cast<std::ptrdiff_t>(extent);
  const auto count = static_cast<std::ptrdiff_t>(windows);
  const auto windows_before = [&](std::ptrdiff_t distance) {  // how many windows start in 0 ... distance-1
    return distance <= 0 ? 0 : std::min(count, (distance - 1) / window.stride + 1);
  };
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::ptrdiff_t place = 0; place < window.kernel; ++place) {
      const std::ptrdiff_t offset = place - window.padding;
      const std::ptrdiff_t first = windows_before(-offset);
      f(row, row * static_cast<std::size_t>(window.kernel) + static_cast<std::size_t>(place), offset, first,
        std::max(first, windows_before(n - offset)));
    }
  }
}

}  // namespace

Array unfold1d(const Array& x, const Window& window) {
  const auto kernel = static_cast<std::size_t>(window.kernel);
  const std::size_t n = x.shape()[2];
  const std::size_t windows = window_count(n, window);
  Array columns(Shape{x.shape()[0], x.shape()[1] * kernel, windows}, Real(0));
  for_rows(x.shape()[0] * x.shape()[1], n, windows, window,
           [&](auto from_row, auto to_row, auto offset, auto first, auto last) {
             const Real* from = x.data() + from_row * n;
             Real* to = columns.data() + to_row * windows;
             for (std::ptrdiff_t l = first; l < last; ++l) to[l] = from[offset + l * window.stride];
           });
  return columns;
}

Array fold1d(const Array& columns, const Window& window, std::size_t extent) {
  const std::size_t windows = columns.shape()[2];
  const std::size_t channels = columns.shape()[1] / static_cast<std::size_t>(window.kernel);
  Array x(Shape{columns.shape()[0], channels, extent}, Real(0));
  for_rows(columns.shape()[0] * channels, extent, windows, window,
           [&](auto to_row, auto from_row, auto offset, auto first, auto last) {
             Real* to = x.data() + to_row * extent;
             const Real* from = columns.data() + from_row * windows;
             for (std::ptrdiff_t l = first; l < last; ++l) to[offset + l * window.stride] += from[l];
           });
  return x;
}

}  // namespace TAPEGRAD
