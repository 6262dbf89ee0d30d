/// LanguageModel: a Transformer that has only a decoder, and says what comes next (Radford et al., 2018 and 2019).
#pragma once

#include "nn/embedding.hpp"
#include "nn/positional_encoding.hpp"
#include "nn/transformer.hpp"

namespace TAPEGRAD::nn {

/// The defaults train in minutes on a CPU, on characters.
struct LanguageModelConfig {
  std::size_t vocabulary = 0;                ///< different tokens; must be given
  std::size_t context = 64;                  ///< the longest sequence: a token sees context - 1 before it
  std::size_t layers = 4;                    ///< how often the sequence is looked at again
  std::size_t heads = 4;                     ///< different things to look for at a time; divides the width
  std::size_t width = 128;                   ///< what is known of a position, and passed from layer to layer
  double dropout = 0;                        ///< 0.1 or 0.2 when the text is small and seen many times
  Activation activation = Activation::gelu;  ///< 4 width hidden units; with swiglu 8/3, as many parameters
  bool bias = false;                         ///< of every map and norm; hardly missed
  bool tied = true;                          ///< the head is the token embedding: fewer parameters, which see more
};

/// Token embedding plus learned positions, layers with causal self-attention that normalise first, a last norm, and a
/// head without bias that scores every token: logits, for cross_entropy with the tokens moved by one.
///
/// Weights start normal with deviation 0.02, those that end a layer's part with 0.02 / sqrt(2 layers), so that the sum
/// over all layers keeps its size (Radford et al., 2019); biases 0. Names are PyTorch's, "layers.N." being its
/// TransformerEncoderLayer. The Rng is used for dropout too and must outlive the model.
class LanguageModel : public Module {
 public:
  /// Refuses sizes of 0.
  LanguageModel(const LanguageModelConfig& config, Rng& rng);

  /// tokens (B,T), T at most the context -> logits (B,T,vocabulary). Position t sees tokens 0 ... t only, in training
  /// and in evaluation, and of these only what the mask allows, which broadcasts to (B,T,T).
  Tensor operator()(const Index& tokens, const std::optional<Mask>& mask = {});

  /// Further tokens (B,n) behind those that the cache has seen -> logits (B,n,vocabulary), the same that all together
  /// would get. An empty cache has seen none; it gets an entry for each layer. Refuses positions beyond the context;
  /// whatever is refused leaves the cache as it was.
  Tensor operator()(const Index& tokens, std::vector<KeyValues>& cache);

  const LanguageModelConfig& config() const { return config_; }

  Embedding token_embedding;
  LearnedPositionalEncoding position_embedding;
  Dropout dropout;
  ModuleList<TransformerEncoderLayer> layers;
  LayerNorm norm;
  Linear head;

 private:
  Tensor embed(const Index& tokens, std::size_t first);

  LanguageModelConfig config_;
};

}  // namespace TAPEGRAD::nn
