/// What is timed. Each workload is made once, with its operands, and then called many times.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tapegrad.hpp"

namespace benchmarks {

/// Does the work once, state staying from call to call. Returns the loss of a training step, else the output.
using Call = std::function<tapegrad::Tensor()>;

struct Workload {
  std::string name;
  std::string about;
  std::function<Call()> make;
  bool trains = false;  // its losses must fall
  double bytes = 0;     // that must be read and written at least, where memory is the limit
};

/// The rows of the comparison. rival_torch.py and rival_jax.py do the same work under the same names.
const std::vector<Workload>& workloads();

/// What only moves memory: a plain copy, and kernels to be compared with it. `bytes` says how much has to be moved.
const std::vector<Workload>& bandwidth_workloads();

/// A workload of any size, to see how cost grows: `attention:B,T,W,H` (scaled dot-product attention of H heads in width
/// W, without a mask), `gpt:B,T,L,H,W` (training step of a language model of L layers) or `ops:N` (scalar ops), each
/// with its backward pass. Null where the name is none of these; sizes that make no sense are refused when it is made.
std::optional<Workload> sized_workload(const std::string& name);

}  // namespace benchmarks
