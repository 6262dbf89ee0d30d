/// The Transformer (Vaswani et al., 2017): attention and feed-forward networks in layers, and encoder and decoder made
/// of them.
///
/// Alphabet: B batch, S source positions, T target positions, E width, F hidden units.
///
/// Parameters have the names and layouts of PyTorch's modules, and their first values, those of `nn.Transformer`
/// included. Different from PyTorch's: operands are (B,T,E); masks are true where attention is allowed, as everywhere
/// in nn/attention.hpp; a decoder is always causal, in training and in evaluation. Each Rng is used for dropout too and
/// must outlive what it was given to.
#pragma once

#include "nn/attention.hpp"
#include "nn/layer_norm.hpp"

namespace TAPEGRAD::nn {

/// What a feed-forward network does between its maps from E to F units and back.
enum class Activation {
  relu,
  gelu,    ///< the exact one, not that of tanh
  swiglu,  ///< silu(gate(x)) linear1(x), `gate` being a third map, from E to F (Shazeer, 2020)
};

/// The defaults are PyTorch's: the paper's base model.
struct TransformerConfig {
  std::size_t width = 512;                   ///< E: what is known of a position, and passed from layer to layer
  std::size_t heads = 8;                     ///< different things to look for at a time; divides the width
  std::size_t hidden = 2048;                 ///< F: where most parameters are; 4 E is usual, 8/3 E with swiglu
  std::size_t encoder_layers = 6;            ///< how often the source is looked at again
  std::size_t decoder_layers = 6;            ///< how often the target is
  double dropout = 0.1;                      ///< of weights, hidden units and what each part adds; 0 for much data
  Activation activation = Activation::relu;  ///< gelu and swiglu have no dead units and cost a little more
  bool norm_first = false;  ///< normalise what goes into a part, not the sum after it: trains without warm-up
  bool bias = true;         ///< of every map and norm; hardly missed, and fewer parameters without
  bool final_norm = true;   ///< after the last layer; needed with norm_first, where nothing else bounds the sum
};

/// What layers of both kinds have: self-attention, and a network that is applied to each position by itself.
class TransformerLayer : public Module {
 public:
  MultiHeadAttention self_attn;
  Linear linear1;
  Linear linear2;
  std::optional<Linear> gate;  ///< with swiglu only
  LayerNorm norm1;
  LayerNorm norm2;

 protected:
  using Part = std::function<Tensor(const Tensor&)>;

  TransformerLayer(const TransformerConfig& config, Rng& rng);
  /// Makes the members known that PyTorch lists behind the attentions.
  void register_network();
  /// x and what the part makes of it, added: norm(x + part(x)), or x + part(norm(x)) with norm_first.
  Tensor add(const Tensor& x, const LayerNorm& norm, const Part& part);
  Tensor feed_forward(const Tensor& x);

 private:
  Activation activation_;
  bool norm_first_;
  Dropout dropout_;
};

/// Self-attention, then the network. With causal attention it is what a language model is made of.
class TransformerEncoderLayer : public TransformerLayer {
 public:
  TransformerEncoderLayer(const TransformerConfig& config, Rng& rng);

  /// x (B,S,E) -> (B,S,E), with MultiHeadAttention's masks.
  Tensor operator()(const Tensor& x, const AttentionOptions& options = {});

  /// Further positions (B,n,E) behind the cached ones -> (B,n,E): what they would get with all before them from
  /// (x, {.causal = true}).
  Tensor operator()(const Tensor& x, KeyValues& cache);

 private:
  Tensor run(const Tensor& x, const Part& attention);
};

/// Which positions a decoder may attend to: masks that broadcast to (B,T,T), besides causality, and to (B,T,S).
struct DecoderMasks {
  std::optional<Mask> self = {};
  std::optional<Mask> memory = {};
};

/// What a decoder layer keeps between calls that give it the target some positions at a time.
struct DecoderCache {
  KeyValues self;    ///< of the target so far
  KeyValues memory;  ///< of the memory, once for all positions
};

/// Causal self-attention, attention to the memory, which is what an encoder returned, then the network.
class TransformerDecoderLayer : public TransformerLayer {
 public:
  TransformerDecoderLayer(const TransformerConfig& config, Rng& rng);

  /// x (B,T,E), memory (B,S,E) -> (B,T,E).
  Tensor operator()(const Tensor& x, const Tensor& memory, const DecoderMasks& masks = {});

  /// The cache before the first position.
  DecoderCache start(const Tensor& memory) const;
  /// Further positions (B,n,E) -> (B,n,E): what they would get with all before them.
  Tensor operator()(const Tensor& x, DecoderCache& cache, const std::optional<Mask>& memory_mask = {});

  MultiHeadAttention multihead_attn;
  LayerNorm norm3;

 private:
  Tensor run(const Tensor& x, const Part& self_attention, const Part& memory_attention);
};

/// Layers of one kind, each given what the one before it returned, and a norm.
template <class Layer>
class TransformerStack : public Module {
 public:
  ModuleList<Layer> layers = child<ModuleList<Layer>>("layers");
  std::optional<LayerNorm> norm;  ///< with final_norm

 protected:
  TransformerStack(std::size_t count, const TransformerConfig& config, Rng& rng);
  /// layer(i, x) is what the i-th layer makes of x.
  template <class Apply>
  Tensor run(Tensor x, const Apply& layer);
};

/// encoder_layers of them, and a norm.
class TransformerEncoder : public TransformerStack<TransformerEncoderLayer> {
 public:
  TransformerEncoder(const TransformerConfig& config, Rng& rng);

  /// x (B,S,E) -> (B,S,E), every layer with the same masks.
  Tensor operator()(const Tensor& x, const AttentionOptions& options = {});
};

/// decoder_layers of them, and a norm. To decode one position after the other:
///
///   std::vector<nn::DecoderCache> cache = decoder.start(memory);
///   for (...) x = next(decoder(x, cache, memory_mask));  // x (B,1,E)
class TransformerDecoder : public TransformerStack<TransformerDecoderLayer> {
 public:
  TransformerDecoder(const TransformerConfig& config, Rng& rng);

  /// x (B,T,E), memory (B,S,E) -> (B,T,E), every layer with the same masks.
  Tensor operator()(const Tensor& x, const Tensor& memory, const DecoderMasks& masks = {});

  /// One cache for each layer.
  std::vector<DecoderCache> start(const Tensor& memory);
  /// Further positions (B,n,E) -> (B,n,E): what they would get with all before them. Refuses a cache of another number
  /// of layers; whatever is refused leaves the cache as it was.
  Tensor operator()(const Tensor& x, std::vector<DecoderCache>& cache, const std::optional<Mask>& memory_mask = {});
};

/// Encoder and decoder. Embeddings, positions and the map to words are the caller's, as in PyTorch. Every weight with
/// two axes starts Xavier-uniform.
class Transformer : public Module {
 public:
  Transformer(const TransformerConfig& config, Rng& rng);

  /// source (B,S,E), target (B,T,E) -> (B,T,E). The source mask (B,1,S), from `padding` say, is for the encoder and for
  /// the decoder's attention to the memory; the target mask, that broadcasts to (B,T,T), is besides causality.
  Tensor operator()(const Tensor& source, const Tensor& target, const std::optional<Mask>& source_mask = {},
                    const std::optional<Mask>& target_mask = {});

  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

}  // namespace TAPEGRAD::nn
