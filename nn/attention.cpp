#include "nn/attention.hpp"

#include <cmath>

namespace TAPEGRAD::nn {
namespace {

/// (B,T,H*D) -> (B,H,T,D).
Tensor split_heads(const Tensor& x, std::size_t heads) {
  return permute(reshape(x, Shape{x.extent(0), x.extent(1), heads, x.extent(2) / heads}), {0, 2, 1, 3});
}

/// (B,H,T,D) -> (B,T,H*D).
Tensor join_heads(const Tensor& x) {
  return reshape(permute(x, {0, 2, 1, 3}), Shape{x.extent(0), x.extent(2), x.extent(1) * x.extent(3)});
}

/// Uniform on [-b, b], b = sqrt(6 / (in + out)) (Glorot and Bengio, 2010).
Array xavier_uniform(std::size_t out, std::size_t in, Rng& rng) {
  const double bound = std::sqrt(6 / static_cast<double>(in + out));
  return rng.uniform({out, in}, -bound, bound);
}

void require_sequences(const char* who, const Tensor& queries, const Tensor& keys, const Tensor& values) {
  require(queries.rank() == 3 && keys.rank() == 3 && values.rank() == 3, who,
          "queries, keys and values must be (B,T,width)", queries.shape(), keys.shape(), values.shape());
  require(queries.extent(0) == keys.extent(0) && keys.extent(0) == values.extent(0), who,
          "queries, keys and values must have the same batch", queries.shape(), keys.shape(), values.shape());
  require(keys.extent(1) == values.extent(1), who, "there must be a value for each key", keys.shape(), values.shape());
}

}  // namespace

Tensor Attention::attention_weights() const {
  require(weights_.defined(), "attention_weights", "no weights were kept: call keep_weights() before the module");
  return weights_;
}

Tensor Attention::dropped(const Tensor& weights) {
  if (keeps_) weights_ = weights.detach();
  return dropout_(weights);
}

Tensor Attention::attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  if (!needs_weights()) return scaled_dot_product_attention(q, k, v, options);
  return join_heads(matmul(dropped(tapegrad::attention_weights(q, k, options)), split_heads(v, options.heads)));
}

AdditiveAttention::AdditiveAttention(std::size_t query_size, std::size_t key_size, std::size_t hidden, Rng& rng,
                                     double p)
    : Attention(p, rng),
      W_q(child<Linear>("W_q", query_size, hidden, rng, false)),
      W_k(child<Linear>("W_k", key_size, hidden, rng, false)),
      w_v(child<Linear>("w_v", hidden, 1, rng, false)) {}

Tensor AdditiveAttention::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                     const std::optional<Mask>& mask) {
  require_sequences("AdditiveAttention", queries, keys, values);
  const Tensor features = tanh(unsqueeze(W_q(queries), 2) + unsqueeze(W_k(keys), 1));  // (B,Q,K,hidden)
  const Tensor scores = squeeze(w_v(features), 3);
  return bmm(dropped(mask ? masked_softmax(scores, *mask) : softmax(scores, 2)), values);
}

Tensor DotProductAttention::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                       const std::optional<Mask>& mask) {
  require_sequences("DotProductAttention", queries, keys, values);
  AttentionOptions options{.heads = 1};
  if (mask) options.mask = mask->rank() == 3 ? every_head(*mask) : *mask;
  const Tensor average = attend(queries, keys, values, options);
  if (keeps_) weights_ = squeeze(weights_, 1);
  return average;
}

MultiHeadAttention::MultiHeadAttention(std::size_t size, std::size_t heads, Rng& rng, const MultiHeadOptions& options)
    : Attention(options.dropout, rng), out_proj(size, size, rng, options.bias), size_(size), heads_(heads) {
  require(heads > 0 && size % heads == 0, "MultiHeadAttention", "the size must be divisible by the number of heads",
          size, heads);
  const std::size_t key_size = options.key_size ? options.key_size : size;
  const std::size_t value_size = options.value_size ? options.value_size : size;
  if (key_size == size && value_size == size) {
    in_proj_weight = param("in_proj_weight", xavier_uniform(3 * size, size, rng));
  } else {
    q_proj_weight = param("q_proj_weight", xavier_uniform(size, size, rng));
    k_proj_weight = param("k_proj_weight", xavier_uniform(size, key_size, rng));
    v_proj_weight = param("v_proj_weight", xavier_uniform(size, value_size, rng));
  }
  if (options.bias) {
    in_proj_bias = param("in_proj_bias", zeros({3 * size}));
    out_proj.bias.mutable_value() = Array(Shape{size}, Real(0));
  }
  child("out_proj", out_proj);  // after the others, as PyTorch lists them
}

Tensor MultiHeadAttention::project(const Tensor& x, std::size_t part) const {
  const auto first = static_cast<std::ptrdiff_t>(part * size_);
  const auto last = static_cast<std::ptrdiff_t>((part + 1) * size_);
  const Tensor bias = in_proj_bias.defined() ? slice(in_proj_bias, 0, first, last) : Tensor();
  if (in_proj_weight.defined()) return linear(x, slice(in_proj_weight, 0, first, last), bias);
  const Tensor* weights[] = {&q_proj_weight, &k_proj_weight, &v_proj_weight};
  return linear(x, *weights[part], bias);
}

Tensor MultiHeadAttention::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                      const AttentionOptions& options) {
  require_sequences("MultiHeadAttention", queries, keys, values);
  require(options.heads == 0, "MultiHeadAttention", "the number of heads is the module's own: leave it out",
          options.heads);
  AttentionOptions each = options;
  each.heads = heads_;
  if (each.mask && each.mask->rank() == 3) each.mask = every_head(*each.mask);
  if (each.additive_mask.defined() && each.additive_mask.rank() == 3)
    each.additive_mask = unsqueeze(each.additive_mask, 1);
  return out_proj(attend(project(queries, 0), project(keys, 1), project(values, 2), each));
}

}  // namespace TAPEGRAD::nn
