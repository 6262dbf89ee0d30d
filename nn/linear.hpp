/// Linear: the affine map that every network is made of.
#pragma once

#include "autograd/random.hpp"
#include "nn/module.hpp"

namespace TAPEGRAD::nn {

/// x (...,in) -> x weight^T + bias (...,out). Names, layouts and first values as PyTorch's Linear: weight (out,in) and
/// bias (out), uniform on [-1/sqrt(in), 1/sqrt(in)).
class Linear : public Module {
 public:
  /// Refuses an extent of 0.
  Linear(std::size_t in, std::size_t out, Rng& rng, bool with_bias = true);

  /// Without a bias, by the weight (out,in) of another module, which both share: that of an embedding, say.
  explicit Linear(const Parameter& shared) : weight(param("weight", shared)) {}

  /// Refuses an x whose last axis is not `in` wide.
  Tensor operator()(const Tensor& x) const {
    const NamedScope name = named_scope();
    return linear(x, weight, bias);
  }

  Parameter weight;
  Parameter bias;  // undefined without a bias
};

}  // namespace TAPEGRAD::nn
