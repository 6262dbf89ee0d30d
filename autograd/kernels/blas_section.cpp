#include "autograd/kernels/blas_section.hpp"

#include <cblas.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef TAPEGRAD_ONEDNN
#include <csignal>
#endif

#include "autograd/array.hpp"

namespace TAPEGRAD {
namespace {

struct Section {
  int depth = 0;
  bool entered = false;
#ifdef _OPENMP
  int threads = 0;
#endif
#ifdef TAPEGRAD_ONEDNN
  sigset_t signals;
#endif
};
thread_local Section section;

}  // namespace

BlasSection::BlasSection() { ++section.depth; }

void BlasSection::enter() {
  if (section.entered) return;
  section.entered = true;
#ifdef _OPENMP
  section.threads = omp_get_max_threads();
  omp_set_num_threads(1);  // a BLAS on OpenMP takes as many as OpenMP would
#endif
#ifdef OPENBLAS_VERSION
  static const bool once = (openblas_set_num_threads(1), true);  // one with threads of its own is told for good
  (void)once;
#endif
#ifdef TAPEGRAD_ONEDNN
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &section.signals);
#endif
}

BlasSection::~BlasSection() {
  if (--section.depth > 0 || !section.entered) return;
  section.entered = false;
#ifdef TAPEGRAD_ONEDNN
  pthread_sigmask(SIG_SETMASK, &section.signals, nullptr);
#endif
#ifdef _OPENMP
  omp_set_num_threads(section.threads);
#endif
}

}  // namespace TAPEGRAD
