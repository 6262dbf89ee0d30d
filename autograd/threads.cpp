#include "autograd/threads.hpp"

#include <cblas.h>
#include "autograd/require.hpp"

namespace TAPEGRAD {

void set_threads(int count) {
  require(count >= 1, "set_threads", "there must be at least one thread", count);
#ifdef _OPENMP
  omp_set_num_threads(count);
#endif
}

int threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

OneBlasThread::OneBlasThread() : threads_(threads()) {
#ifdef _OPENMP
  omp_set_num_threads(1);  // a BLAS on OpenMP takes as many as OpenMP would
#endif
#ifdef OPENBLAS_VERSION
  static const bool once = (openblas_set_num_threads(1), true);  // one with threads of its own is told for good
  (void)once;
#endif
}

OneBlasThread::~OneBlasThread() {
#ifdef _OPENMP
  omp_set_num_threads(threads_);
#endif
}

}  // namespace TAPEGRAD
