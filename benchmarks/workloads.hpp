/// What is timed. Each workload is made once, with its operands, and then called many times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tapegrad.hpp"

namespace benchmarks {

/// Does the work once, state staying from call to call. Returns the loss of a training step, else the output.
using Call = std::function<tapegrad::Tensor()>;

struct Workload {
  const char* name;
  const char* about;
  std::function<Call()> make;
  bool trains = false;  // its losses must fall
  double bytes = 0;     // that must be read and written at least, where memory is the limit
};

/// The rows of the comparison. rival_torch.py and rival_jax.py do the same work under the same names.
const std::vector<Workload>& workloads();

/// What only moves memory: a plain copy, and kernels to be compared with it. `bytes` says how much has to be moved.
const std::vector<Workload>& bandwidth_workloads();

/// The multi-head attention rows at any size.
Call attention(std::size_t batch, std::size_t length, std::size_t width, std::size_t heads);

/// The language model rows at any size: a training step.
struct Sizes {
  std::size_t batch, length, layers, heads, width;
};
Call language_model_step(const Sizes& sizes);

/// A scalar through `ops` / 2 times z * 0.999 + 0.001, then backward.
Call scalar_ops(std::size_t ops);

}  // namespace benchmarks
