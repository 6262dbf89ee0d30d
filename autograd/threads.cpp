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

void keep_blas_to_one_thread() {
#ifdef OPENBLAS_VERSION
  const int ours = threads();
  openblas_set_num_threads(1);  // an OpenBLAS built on OpenMP sets OpenMP's number as well
#ifdef _OPENMP
  omp_set_num_threads(ours);
#endif
  (void)ours;
#endif
}

int threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace TAPEGRAD
