/// How many threads kernels and the BLAS may use.
#pragma once

#include "autograd/array.hpp"

namespace TAPEGRAD {

/// Kernels called from this thread, and the BLAS, use at most that many threads; at least 1. Without OpenMP there is
/// one whatever is asked for. Results are the same for any number.
void set_threads(int count);
int threads();

}  // namespace TAPEGRAD
