/// Bert (Devlin et al., 2019): the Transformer encoder of many pretrained models, with the names that their files have.
///
/// Alphabet: B batch, T tokens, E width, F hidden units.
#pragma once

#include "nn/embedding.hpp"
#include "nn/layer_norm.hpp"
#include "nn/linear.hpp"

namespace TAPEGRAD::nn {

/// The defaults are those of MiniLM-L6-H384-uncased.
struct BertConfig {
  std::size_t vocabulary = 30522;  ///< different tokens
  std::size_t positions = 512;     ///< of the longest text
  std::size_t types = 2;           ///< of tokens; only the first one is used
  std::size_t width = 384;         ///< E
  std::size_t layers = 6;
  std::size_t heads = 12;                   ///< divides the width
  std::size_t hidden = 1536;                ///< F
  double eps = 1e-12;                       ///< of every norm
  std::optional<std::int64_t> padding = 0;  ///< the token whose embedding is not learnt
};

/// A map, to be added to what the map's input was made of, and the norm of the sum.
class BertOutput : public Module {
 public:
  BertOutput(std::size_t in, const BertConfig& config, Rng& rng);
  /// x (...,in), residual (...,E) -> (...,E).
  Tensor operator()(const Tensor& x, const Tensor& residual) const;

  Linear dense;
  LayerNorm norm;  ///< named LayerNorm
};

/// Self-attention and what follows it, x (B,T,E) -> (B,T,E).
class BertAttention : public Module {
 public:
  BertAttention(const BertConfig& config, Rng& rng);
  Tensor operator()(const Tensor& x, const std::optional<Mask>& mask) const;

  struct Maps : Module {
    Maps(const BertConfig& config, Rng& rng);
    Linear query, key, value;
  };
  Maps maps;  ///< named self
  BertOutput output;

 private:
  std::size_t heads_;
};

/// Attention, then a network of one hidden layer with gelu (the exact one); each normalised after its residual.
class BertLayer : public Module {
 public:
  BertLayer(const BertConfig& config, Rng& rng);
  Tensor operator()(const Tensor& x, const std::optional<Mask>& mask) const;

  struct Intermediate : Module {
    Intermediate(const BertConfig& config, Rng& rng);
    Linear dense;
  };
  BertAttention attention;
  Intermediate intermediate;
  BertOutput output;
};

/// Embeddings of tokens and positions, layers of self-attention in both directions, and a pooler, a map that the
/// output doesn't go through: it is only there because the files have it. No dropout. Parameters have the names of
/// BertModel in Hugging Face's transformers; first values are those of the layers.
class Bert : public Module {
 public:
  /// Refuses sizes of 0, and heads that don't divide the width.
  Bert(const BertConfig& config, Rng& rng);

  /// tokens (B,T), T at most `positions` -> (B,T,E). Of each text the first lengths (B) tokens are attended to; what
  /// the others get depends on these, and means nothing.
  Tensor operator()(const Index& tokens, const Index& lengths);

  const BertConfig& config() const { return config_; }

  struct Embeddings : Module {
    Embeddings(const BertConfig& config, Rng& rng);
    Tensor operator()(const Index& tokens) const;
    Embedding word_embeddings, position_embeddings, token_type_embeddings;
    LayerNorm norm;  ///< named LayerNorm
  };
  struct Encoder : Module {
    ModuleList<BertLayer> layer = child<ModuleList<BertLayer>>("layer");
  };
  struct Pooler : Module {
    Pooler(const BertConfig& config, Rng& rng);
    Linear dense;
  };
  Embeddings embeddings;
  Encoder encoder = child<Encoder>("encoder");
  Pooler pooler;

 private:
  BertConfig config_;
};

/// The mean of each text's first lengths (B) rows of x (B,T,E), divided by its Euclidean norm -> (B,E): a sentence's
/// embedding. Refuses a length of 0, or above T.
Tensor mean_embedding(const Tensor& x, const Index& lengths);

}  // namespace TAPEGRAD::nn
