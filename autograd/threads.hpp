/// How many threads kernels and the BLAS may use.
#pragma once

#include "autograd/array.hpp"

namespace TAPEGRAD {

/// Ops called from this thread use at most that many threads, 1 to 1024. Without OpenMP there is one whatever is asked
/// for. Results are the same for any number: work is split by its shape, and each piece is computed by one thread. For
/// that, the first product tells a CBLAS that is OpenBLAS to use one thread, in the whole program.
void set_threads(int count);
int threads();

}  // namespace TAPEGRAD
