/// Attention: values averaged by how well their keys match a query.
///
/// Alphabet: B batch, H heads, Q queries, K keys, V width of the values, E width of multi-head attention.
///
/// Masks are true where a query may attend to a key (PyTorch's nn.MultiheadAttention has them the other way round) and
/// broadcast; `valid_lengths`, `padding` and `causal` make them, && combines them. A query that may attend to nothing
/// gets an average of zeros, and sends back zero gradients. What lies at a key that a mask rules out has no influence,
/// as long as it is finite: the weight there is exactly 0.
#pragma once

#include "nn/dropout.hpp"
#include "nn/linear.hpp"

namespace TAPEGRAD::nn {

/// Base of attention modules: dropout of the weights while training, and weights kept on request.
class Attention : public Module {
 public:
  /// Whether calls keep their attention weights, (B,Q,K) numbers for each head, from now on.
  void keep_weights(bool keep = true) { keeps_ = keep; }

  /// The weights of the last call that kept them, before dropout, without a gradient: (B,Q,K), or (B,H,Q,K) from
  /// MultiHeadAttention. Rows sum to 1, or are zeros where there was nothing to attend to. Refused when there are none.
  Tensor attention_weights() const;

 protected:
  Attention(double p, Rng& rng) : dropout_(child<Dropout>("dropout", p, rng)) {}

  /// Whether a call needs the weights themselves, so can't use the fused op.
  bool needs_weights() const { return keeps_ || dropout_.active(); }
  /// The weights after dropout, kept before it if asked for.
  Tensor dropped(const Tensor& weights);
  /// scaled_dot_product_attention of heads that lie in the rows, fused where it can be.
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);

  Dropout dropout_;
  bool keeps_ = false;
  Tensor weights_;
};

/// Scores w_v^T tanh(W_q query + W_k key), softmax, average (Bahdanau et al., 2015): queries and keys may differ in
/// size.
class AdditiveAttention : public Attention {
 public:
  /// Maps without biases from both sizes to `hidden` units; dropout of the weights with probability p.
  AdditiveAttention(std::size_t query_size, std::size_t key_size, std::size_t hidden, Rng& rng, double p = 0);

  /// queries (B,Q,query_size), keys (B,K,key_size), values (B,K,V), mask that broadcasts to (B,Q,K) -> (B,Q,V). Holds
  /// (B,Q,K,hidden) numbers.
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                    const std::optional<Mask>& mask = {});

  Linear W_q;
  Linear W_k;
  Linear w_v;
};

/// Scores query . key / sqrt(D), softmax, average (Vaswani et al., 2017, equation 1).
class DotProductAttention : public Attention {
 public:
  /// Dropout of the weights with probability p, from the caller's Rng, which must outlive this.
  DotProductAttention(double p, Rng& rng) : Attention(p, rng) {}

  /// queries (B,Q,D), keys (B,K,D), values (B,K,V), mask that broadcasts to (B,Q,K) -> (B,Q,V). One fused op, but for
  /// dropout in training or when weights are kept.
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                    const std::optional<Mask>& mask = {});
};

struct MultiHeadOptions {
  std::size_t query_size = 0;  ///< width of the queries; 0 for E
  std::size_t key_size = 0;    ///< width of the keys; 0 for E
  std::size_t value_size = 0;  ///< width of the values; 0 for E
  bool bias = true;            ///< of all four maps
  double dropout = 0;          ///< probability for each attention weight, in training
};

/// What attention goes by of the positions that may be attended to, all heads side by side: (B,K,E) each. Undefined
/// while there are none. Plain Tensors: `index_select` along axis 0 picks batch items, for beam search say.
struct KeyValues {
  Tensor keys;
  Tensor values;
};

/// H attentions side by side, on learned maps of the queries, keys and values, and a learned map of what they return
/// (Vaswani et al., 2017, section 3.2.2).
///
/// Parameters have the names, layouts and first values of PyTorch's nn.MultiheadAttention: in_proj_weight (3E,E) with
/// the rows of the queries, keys and values in this order (Xavier-uniform over all of it), or q_proj_weight
/// (E,query_size), k_proj_weight (E,key_size) and v_proj_weight (E,value_size) when a size differs from E; in_proj_bias
/// (3E) zeros; out_proj.weight (E,E) as Linear's; out_proj.bias (E) zeros. Different from PyTorch's: operands are
/// (B,T,...); masks are true where attention is allowed; weights are kept for each head, before dropout; queries may be
/// of another size too; there are no extra keys (add_bias_kv, add_zero_attn).
class MultiHeadAttention : public Attention {
 public:
  /// E = size, divisible by the number of heads.
  MultiHeadAttention(std::size_t size, std::size_t heads, Rng& rng, const MultiHeadOptions& options = {});

  /// queries (B,Q,query_size), keys (B,K,key_size), values (B,K,value_size) -> (B,Q,E). Masks broadcast to (B,H,Q,K),
  /// but one of three axes is (B,Q,K), as `valid_lengths` and `padding` make it, for every head; an additive mask
  /// likewise. The number of heads in the options must be left out. One fused op, but for dropout in training or when
  /// weights are kept.
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                    const AttentionOptions& options = {});

  /// Self-attention: x (B,T,E) is queries, keys and values, whose sizes must be equal.
  Tensor operator()(const Tensor& x, const AttentionOptions& options = {}) { return (*this)(x, x, x, options); }

  /// Causal self-attention of further positions x (B,n,E), which come behind those in the cache: they attend to these,
  /// and each to itself and those before it. Their keys and values are added to the cache. So positions that come one
  /// by one, or some at a time, get what they would all together from (x, {.causal = true}).
  Tensor operator()(const Tensor& x, KeyValues& cache);

  /// What keys (B,K,key_size) and values (B,K,value_size) become before any query is known: computed once for many
  /// calls of attend_to, which takes queries (B,Q,query_size) and returns what (queries, keys, values, options) would.
  KeyValues keys_and_values(const Tensor& keys, const Tensor& values) const;
  Tensor attend_to(const KeyValues& memory, const Tensor& queries, const AttentionOptions& options = {});

  Parameter in_proj_weight;  // undefined where the three below are not, and the other way round
  Parameter q_proj_weight;
  Parameter k_proj_weight;
  Parameter v_proj_weight;
  Parameter in_proj_bias;  // undefined without biases
  Linear out_proj;

 private:
  Tensor project(const Tensor& x, std::size_t part) const;

  std::size_t size_;
  std::size_t heads_;
};

}  // namespace TAPEGRAD::nn
