/// What calls of the BLAS and of oneDNN need of their thread.
#pragma once

namespace TAPEGRAD {

/// From enter() until the outermost section of this thread ends,
/// - the libraries use this thread alone: with theirs, results would depend on how many there are;
/// - no signal interrupts it: inside oneDNN's products the stack pointer points into the heap, where a signal handler's
///   frame would overwrite what lies there (mended in its 3.11.2; oneDNN's issue 4845).
/// A section around many products makes these settings, which are calls of the system, once.
class BlasSection {
 public:
  BlasSection();
  ~BlasSection();
  BlasSection(const BlasSection&) = delete;
  static void enter();
};

}  // namespace TAPEGRAD
