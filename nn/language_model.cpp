#include "nn/language_model.hpp"

#include <cmath>

#include "nn/init.hpp"

namespace TAPEGRAD::nn {
namespace {

TransformerConfig layer_config(const LanguageModelConfig& config) {
  const std::size_t width = config.width;
  return {.width = width,
          .heads = config.heads,
          .hidden = config.activation == Activation::swiglu ? 8 * width / 3 : 4 * width,
          .dropout = config.dropout,
          .activation = config.activation,
          .norm_first = true,
          .bias = config.bias};
}

}  // namespace

LanguageModel::LanguageModel(const LanguageModelConfig& config, Rng& rng)
    : token_embedding(child<Embedding>("token_embedding", config.vocabulary, config.width, rng)),
      position_embedding(child<LearnedPositionalEncoding>("position_embedding", config.context, config.width, rng)),
      dropout(child<Dropout>("dropout", config.dropout, rng)),
      layers(child<ModuleList<TransformerEncoderLayer>>("layers")),
      norm(child<LayerNorm>("norm", config.width, Real(1e-5), config.bias)),
      head(config.tied ? Linear(token_embedding.weight) : Linear(config.width, config.vocabulary, rng, false)),
      config_(config) {
  require(config.layers > 0, "LanguageModel", "there must be a layer", config.layers);
  for (std::size_t i = 0; i < config.layers; ++i) layers.add(layer_config(config), rng);
  child("head", head);

  for (const auto& [name, parameter] : named_parameters()) {
    if (parameter.rank() > 1) init::normal(parameter, rng, 0, 0.02);
    if (name.ends_with("bias")) init::constant(parameter, 0);
  }
  const double last = 0.02 / std::sqrt(2 * static_cast<double>(config.layers));
  for (std::size_t i = 0; i < config.layers; ++i) {
    init::normal(layers[i].self_attn.out_proj.weight, rng, 0, last);
    init::normal(layers[i].linear2.weight, rng, 0, last);
  }
}

Tensor LanguageModel::embed(const Index& tokens, std::size_t first) {
  require(tokens.rank() == 2, "LanguageModel", "the tokens must be (B,T)", tokens.shape());
  return dropout(position_embedding(token_embedding(tokens), static_cast<std::int64_t>(first)));
}

Tensor LanguageModel::operator()(const Index& tokens, const std::optional<Mask>& mask) {
  const NamedScope name = named_scope();
  Tensor x = embed(tokens, 0);
  for (std::size_t i = 0; i < layers.size(); ++i) x = layers[i](x, {.mask = mask, .causal = true});
  return head(norm(x));
}

Tensor LanguageModel::operator()(const Index& tokens, std::vector<KeyValues>& cache) {
  const NamedScope name = named_scope();
  std::vector<KeyValues> longer = cache.empty() ? std::vector<KeyValues>(layers.size()) : cache;
  require(longer.size() == layers.size(), "LanguageModel", "the cache must have an entry for each layer", cache.size(),
          layers.size());
  Tensor x = embed(tokens, longer[0].keys.defined() ? longer[0].keys.extent(1) : 0);
  for (std::size_t i = 0; i < layers.size(); ++i) x = layers[i](x, longer[i]);
  cache.swap(longer);
  return head(norm(x));
}

}  // namespace TAPEGRAD::nn
