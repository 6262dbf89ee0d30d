/// Conv1d: one map of every window of a sequence.
#pragma once

#include "autograd/random.hpp"
#include "nn/module.hpp"

namespace TAPEGRAD::nn {

struct Conv1dOptions {
  std::ptrdiff_t stride = 1;
  std::ptrdiff_t padding = 0;  ///< zeros before and after the sequence
  bool bias = true;
};

/// The op `conv1d` with weights: x (B,channels,N) -> (B,outputs,L), L = floor((N + 2 padding - kernel) / stride) + 1.
/// Names and layouts are those of PyTorch's Conv1d.
class Conv1d : public Module {
 public:
  /// Weight and bias start uniform on +-1/sqrt(channels kernel). Refuses an extent of 0, a stride below 1 and a
  /// negative padding.
  Conv1d(std::size_t channels, std::size_t outputs, std::size_t kernel, Rng& rng, const Conv1dOptions& options = {});

  Tensor operator()(const Tensor& x);

  Parameter weight;  ///< (outputs,channels,kernel)
  Parameter bias;    ///< (outputs); undefined without a bias

 private:
  Conv1dOptions options_;
};

}  // namespace TAPEGRAD::nn
