/// How many threads kernels and the BLAS may use.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#include "autograd/array.hpp"

namespace TAPEGRAD {

/// Ops called from this thread use at most that many threads; at least 1. Without OpenMP there is one whatever is asked
/// for. Results are the same for any number: work is split by its shape, and each piece is computed by one thread.
void set_threads(int count);
int threads();

/// While it lives, the BLAS uses one thread when called from this thread: products are split here, by their shape.
class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;

 private:
  int threads_;
};

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

}  // namespace TAPEGRAD
