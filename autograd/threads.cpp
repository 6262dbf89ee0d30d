#include "autograd/threads.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif
#include "autograd/require.hpp"

namespace TAPEGRAD {

void set_threads(int count) {
  require(count >= 1 && count <= 1024, "set_threads", "the number of threads must be from 1 to 1024", count);
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

}  // namespace TAPEGRAD
