/// Embedding: a learned row of numbers for each of a set of things, such as words.
#pragma once

#include <optional>

#include "autograd/random.hpp"
#include "nn/module.hpp"

namespace TAPEGRAD::nn {

/// Indices (...) -> (...,width). Name and first values as PyTorch's Embedding: weight (count,width), standard normal;
/// the row `padding`, if given, starts as zeros and gets no gradient.
class Embedding : public Module {
 public:
  /// Refuses an extent of 0, and a padding outside 0 ... count-1.
  Embedding(std::size_t count, std::size_t width, Rng& rng, std::optional<std::int64_t> padding = {});

  /// Refuses an index outside 0 ... count-1.
  Tensor operator()(const Index& index) const {
    const NamedScope name = named_scope();
    return embedding(index, weight, padding_);
  }

  Parameter weight;

 private:
  std::optional<std::int64_t> padding_;
};

}  // namespace TAPEGRAD::nn
