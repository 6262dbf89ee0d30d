#include "nn/bert.hpp"

namespace TAPEGRAD::nn {

BertOutput::BertOutput(std::size_t in, const BertConfig& config, Rng& rng)
    : dense(child<Linear>("dense", in, config.width, rng)),
      norm(child<LayerNorm>("LayerNorm", config.width, static_cast<Real>(config.eps))) {}

Tensor BertOutput::operator()(const Tensor& x, const Tensor& residual) const {
  const NamedScope name = named_scope();
  return norm(dense(x) + residual);
}

BertAttention::Maps::Maps(const BertConfig& config, Rng& rng)
    : query(child<Linear>("query", config.width, config.width, rng)),
      key(child<Linear>("key", config.width, config.width, rng)),
      value(child<Linear>("value", config.width, config.width, rng)) {}

BertAttention::BertAttention(const BertConfig& config, Rng& rng)
    : maps(child<Maps>("self", config, rng)),
      output(child<BertOutput>("output", config.width, config, rng)),
      heads_(config.heads) {}

Tensor BertAttention::operator()(const Tensor& x, const std::optional<Mask>& mask) const {
  const NamedScope name = named_scope();
  const Tensor averages =
      scaled_dot_product_attention(maps.query(x), maps.key(x), maps.value(x), {.mask = mask, .heads = heads_});
  return output(averages, x);
}

BertLayer::Intermediate::Intermediate(const BertConfig& config, Rng& rng)
    : dense(child<Linear>("dense", config.width, config.hidden, rng)) {}

BertLayer::BertLayer(const BertConfig& config, Rng& rng)
    : attention(child<BertAttention>("attention", config, rng)),
      intermediate(child<Intermediate>("intermediate", config, rng)),
      output(child<BertOutput>("output", config.hidden, config, rng)) {}

Tensor BertLayer::operator()(const Tensor& x, const std::optional<Mask>& mask) const {
  const NamedScope name = named_scope();
  const Tensor attended = attention(x, mask);
  return output(gelu(intermediate.dense(attended)), attended);
}

Bert::Embeddings::Embeddings(const BertConfig& config, Rng& rng)
    : word_embeddings(child<Embedding>("word_embeddings", config.vocabulary, config.width, rng, config.padding)),
      position_embeddings(child<Embedding>("position_embeddings", config.positions, config.width, rng)),
      token_type_embeddings(child<Embedding>("token_type_embeddings", config.types, config.width, rng)),
      norm(child<LayerNorm>("LayerNorm", config.width, static_cast<Real>(config.eps))) {}

Tensor Bert::Embeddings::operator()(const Index& tokens) const {
  const NamedScope name = named_scope();
  const auto length = static_cast<std::ptrdiff_t>(tokens.shape()[1]);
  const Tensor positions = slice(position_embeddings.weight, 0, 0, length);  // (T,E)
  return norm(word_embeddings(tokens) + (positions + slice(token_type_embeddings.weight, 0, 0, 1)));
}

Bert::Pooler::Pooler(const BertConfig& config, Rng& rng)
    : dense(child<Linear>("dense", config.width, config.width, rng)) {}

Bert::Bert(const BertConfig& config, Rng& rng)
    : embeddings(child<Embeddings>("embeddings", config, rng)),
      pooler(child<Pooler>("pooler", config, rng)),
      config_(config) {
  require(config.layers > 0, "Bert", "there must be a layer", config.layers);
  require(config.heads > 0 && config.width % config.heads == 0, "Bert", "the heads must divide the width", config.heads,
          config.width);
  for (std::size_t i = 0; i < config.layers; ++i) encoder.layer.add(config, rng);
}

Tensor Bert::operator()(const Index& tokens, const Index& lengths) {
  const NamedScope name = named_scope();
  require(tokens.rank() == 2, "Bert", "the tokens must be (B,T)", tokens.shape());
  require(tokens.shape()[1] <= config_.positions, "Bert", "a text must be at most as long as there are positions",
          tokens.shape()[1], config_.positions);
  require(lengths.shape() == Shape{tokens.shape()[0]}, "Bert", "there must be a length for each text", lengths.shape());
  const std::size_t longest = tokens.shape()[1];
  const bool full = std::all_of(lengths.begin(), lengths.end(), [&](auto n) { return n == std::int64_t(longest); });
  std::optional<Mask> mask;
  if (!full) mask = every_head(valid_lengths(lengths, longest));
  Tensor x = embeddings(tokens);
  for (std::size_t i = 0; i < encoder.layer.size(); ++i) x = encoder.layer[i](x, mask);
  return x;
}

Tensor mean_embedding(const Tensor& x, const Index& lengths) {
  require(x.rank() == 3 && lengths.shape() == Shape{x.extent(0)}, "mean_embedding",
          "there must be a length for each of (B,T,E)", x.shape(), lengths.shape());
  Array weights(Shape{x.extent(0), 1, x.extent(1)}, Real(0));
  for (std::size_t b = 0; b < x.extent(0); ++b) {
    const std::int64_t length = lengths.data()[b];
    require(length > 0 && static_cast<std::size_t>(length) <= x.extent(1), "mean_embedding",
            "a length must be from 1 to T", length, x.extent(1));
    std::fill_n(weights.data() + b * x.extent(1), length, 1 / static_cast<Real>(length));
  }
  const Tensor means = squeeze(bmm(Tensor(std::move(weights)), x), 1);
  return means / sqrt(sum(means * means, {1}, true));
}

}  // namespace TAPEGRAD::nn
