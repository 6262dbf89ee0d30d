/// The loop over pieces of work that threads share.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cstddef>

#include "autograd/array.hpp"

namespace TAPEGRAD {

/// From this many elements of rows on, threads are worth waking.
constexpr std::size_t kParallel = 1 << 17;

/// f(0) ... f(n-1), on all threads if `parallel`, and if this is no such thread already. f must not throw.
template <class F>
void parallel_for(std::size_t n, [[maybe_unused]] bool parallel, F f) {
#ifdef _OPENMP
  if (parallel && !omp_in_parallel() && omp_get_max_threads() > 1) {
    const auto count = static_cast<std::ptrdiff_t>(n);
#pragma omp parallel for schedule(dynamic)
    for (std::ptrdiff_t i = 0; i < count; ++i) f(static_cast<std::size_t>(i));
    return;
  }
#endif
  for (std::size_t i = 0; i < n; ++i) f(i);
}

/// f(first, last) for ranges of 0 ... n-1, of some thousand elements each; an item has `width` elements.
template <class F>
void parallel_ranges(std::size_t n, std::size_t width, F f) {
  const std::size_t range = std::max<std::size_t>(1, kParallel / 16 / std::max<std::size_t>(1, width));
  if (n == 0 || n <= range) return f(std::size_t{0}, n);
  parallel_for((n + range - 1) / range, n * width >= kParallel,
               [&](std::size_t i) { f(i * range, std::min(n, (i + 1) * range)); });
}

}  // namespace TAPEGRAD
