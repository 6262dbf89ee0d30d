#include "nn/transformer.hpp"

#include "nn/init.hpp"

namespace TAPEGRAD::nn {
namespace {

constexpr Real kEps = Real(1e-5);

MultiHeadOptions attention_options(const TransformerConfig& config) {
  return {.bias = config.bias, .dropout = config.dropout};
}

}  // namespace

TransformerLayer::TransformerLayer(const TransformerConfig& config, Rng& rng)
    : self_attn(child<MultiHeadAttention>("self_attn", config.width, config.heads, rng, attention_options(config))),
      linear1(config.width, config.hidden, rng, config.bias),
      linear2(config.hidden, config.width, rng, config.bias),
      norm1(config.width, kEps, config.bias),
      norm2(config.width, kEps, config.bias),
      activation_(config.activation),
      norm_first_(config.norm_first),
      dropout_(config.dropout, rng) {
  if (activation_ == Activation::swiglu) gate.emplace(config.width, config.hidden, rng, config.bias);
}

void TransformerLayer::register_network() {
  child("linear1", linear1);
  child("linear2", linear2);
  if (gate) child("gate", *gate);
  child("norm1", norm1);
  child("norm2", norm2);
  child("dropout", dropout_);
}

Tensor TransformerLayer::add(const Tensor& x, const LayerNorm& norm, const Part& part) {
  return norm_first_ ? x + dropout_(part(norm(x))) : norm(x + dropout_(part(x)));
}

Tensor TransformerLayer::feed_forward(const Tensor& x) {
  Tensor hidden = linear1(x);
  if (activation_ == Activation::relu) hidden = relu(hidden);
  if (activation_ == Activation::gelu) hidden = gelu(hidden);
  if (activation_ == Activation::swiglu) hidden = silu((*gate)(x)) * hidden;
  return linear2(dropout_(hidden));
}

// ---- layers of one kind ---------------------------------------------------------------------------------------------

template <class Layer>
TransformerStack<Layer>::TransformerStack(std::size_t count, const TransformerConfig& config, Rng& rng) {
  for (std::size_t i = 0; i < count; ++i) layers.add(config, rng);
  if (config.final_norm) child("norm", norm.emplace(config.width, kEps, config.bias));
}

template <class Layer>
template <class Apply>
Tensor TransformerStack<Layer>::run(Tensor x, const Apply& layer) {
  const NamedScope name = named_scope();
  for (std::size_t i = 0; i < layers.size(); ++i) x = layer(i, x);
  return norm ? (*norm)(x) : x;
}

// ---- encoder --------------------------------------------------------------------------------------------------------

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerConfig& config, Rng& rng)
    : TransformerLayer(config, rng) {
  register_network();
}

Tensor TransformerEncoderLayer::run(const Tensor& x, const Part& attention) {
  const NamedScope name = named_scope();
  return add(add(x, norm1, attention), norm2, [&](const Tensor& t) { return feed_forward(t); });
}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const AttentionOptions& options) {
  return run(x, [&](const Tensor& t) { return self_attn(t, options); });
}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, KeyValues& cache) {
  return run(x, [&](const Tensor& t) { return self_attn(t, cache); });
}

TransformerEncoder::TransformerEncoder(const TransformerConfig& config, Rng& rng)
    : TransformerStack(config.encoder_layers, config, rng) {}

Tensor TransformerEncoder::operator()(const Tensor& x, const AttentionOptions& options) {
  return run(x, [&](std::size_t i, const Tensor& t) { return layers[i](t, options); });
}

// ---- decoder --------------------------------------------------------------------------------------------------------

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerConfig& config, Rng& rng)
    : TransformerLayer(config, rng),
      multihead_attn(
          child<MultiHeadAttention>("multihead_attn", config.width, config.heads, rng, attention_options(config))),
      norm3(config.width, kEps, config.bias) {
  register_network();
  child("norm3", norm3);
}

Tensor TransformerDecoderLayer::run(const Tensor& x, const Part& self_attention, const Part& memory_attention) {
  const NamedScope name = named_scope();
  Tensor y = add(x, norm1, self_attention);
  y = add(y, norm2, memory_attention);
  return add(y, norm3, [&](const Tensor& t) { return feed_forward(t); });
}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory, const DecoderMasks& masks) {
  return run(
      x, [&](const Tensor& t) { return self_attn(t, {.mask = masks.self, .causal = true}); },
      [&](const Tensor& t) { return multihead_attn(t, memory, memory, {.mask = masks.memory}); });
}

DecoderCache TransformerDecoderLayer::start(const Tensor& memory) const {
  return {{}, multihead_attn.keys_and_values(memory, memory)};
}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, DecoderCache& cache,
                                           const std::optional<Mask>& memory_mask) {
  KeyValues target = cache.self;
  const Tensor y = run(
      x, [&](const Tensor& t) { return self_attn(t, target); },
      [&](const Tensor& t) { return multihead_attn.attend_to(cache.memory, t, {.mask = memory_mask}); });
  cache.self = target;
  return y;
}

TransformerDecoder::TransformerDecoder(const TransformerConfig& config, Rng& rng)
    : TransformerStack(config.decoder_layers, config, rng) {}

Tensor TransformerDecoder::operator()(const Tensor& x, const Tensor& memory, const DecoderMasks& masks) {
  return run(x, [&](std::size_t i, const Tensor& t) { return layers[i](t, memory, masks); });
}

std::vector<DecoderCache> TransformerDecoder::start(const Tensor& memory) {
  std::vector<DecoderCache> cache;
  for (std::size_t i = 0; i < layers.size(); ++i) cache.push_back(layers[i].start(memory));
  return cache;
}

Tensor TransformerDecoder::operator()(const Tensor& x, std::vector<DecoderCache>& cache,
                                      const std::optional<Mask>& memory_mask) {
  require(cache.size() == layers.size(), "TransformerDecoder", "there must be a cache for each layer, from start()",
          cache.size(), layers.size());
  std::vector<DecoderCache> longer = cache;
  const Tensor y = run(x, [&](std::size_t i, const Tensor& t) { return layers[i](t, longer[i], memory_mask); });
  cache.swap(longer);
  return y;
}

// ---- both -----------------------------------------------------------------------------------------------------------

Transformer::Transformer(const TransformerConfig& config, Rng& rng)
    : encoder(child<TransformerEncoder>("encoder", config, rng)),
      decoder(child<TransformerDecoder>("decoder", config, rng)) {
  for (const Parameter& parameter : parameters()) {
    if (parameter.rank() > 1) init::xavier_uniform(parameter, rng);
  }
}

Tensor Transformer::operator()(const Tensor& source, const Tensor& target, const std::optional<Mask>& source_mask,
                               const std::optional<Mask>& target_mask) {
  const NamedScope name = named_scope();
  if (source_mask) {
    require(source_mask->rank() == 3 && source_mask->shape()[1] == 1, "Transformer", "the source mask must be (B,1,S)",
            source_mask->shape());
  }
  const Tensor memory = encoder(source, {.mask = source_mask});
  return decoder(target, memory, {.self = target_mask, .memory = source_mask});
}

}  // namespace TAPEGRAD::nn
