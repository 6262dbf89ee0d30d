// The net: a Transformer between embeddings of two vocabularies and scores of the next token.
#pragma once

#include <cmath>

#include "examples/translate/corpus.hpp"
#include "examples/translate/settings.hpp"
#include "nn/embedding.hpp"
#include "nn/init.hpp"
#include "nn/positional_encoding.hpp"
#include "nn/transformer.hpp"

namespace translate {

using namespace tapegrad;

/// Texts side by side, the shorter ones filled up with padding.
struct Batch {
  Index source;  ///< (B,S): tokens and the end
  Index input;   ///< (B,T): the start and the tokens
  Index labels;  ///< (B,T): the tokens and the end, which is what should come next
};

/// Rows of numbers -> (rows, longest).
inline Index padded(const std::vector<Ids>& rows) {
  std::size_t longest = 0;
  for (const Ids& row : rows) longest = std::max(longest, row.size());
  Index index(Shape{rows.size(), longest});
  std::fill_n(index.data(), index.size(), Vocabulary::padding);
  for (std::size_t i = 0; i < rows.size(); ++i) std::copy(rows[i].begin(), rows[i].end(), index.data() + i * longest);
  return index;
}

inline Ids ended(Ids ids) {
  ids.push_back(Vocabulary::end);
  return ids;
}

inline Batch batch_of(const std::vector<Pair>& pairs, const Corpus& corpus) {
  std::vector<Ids> source, input, labels;
  for (const Pair& pair : pairs) {
    source.push_back(ended(corpus.source.ids(pair.source)));
    labels.push_back(ended(corpus.target.ids(pair.target)));
    input.push_back(labels.back());
    std::rotate(input.back().rbegin(), input.back().rbegin() + 1, input.back().rend());
    input.back().front() = Vocabulary::start;
  }
  return {padded(source), padded(input), padded(labels)};
}

/// Pre-norm; the embedding of the target is the map to the scores too (Press and Wolf, 2017).
class Translator : public nn::Module {
 public:
  Translator(const Settings& settings, std::size_t source_words, std::size_t target_words, Rng& rng)
      : source_embedding(child<nn::Embedding>("source_embedding", source_words, settings.width, rng)),
        target_embedding(child<nn::Embedding>("target_embedding", target_words, settings.width, rng)),
        positions(child<nn::PositionalEncoding>("positions", settings.width, settings.dropout, rng)),
        transformer(child<nn::Transformer>("transformer", config(settings), rng)),
        head(child<nn::Linear>("head", target_embedding.weight)),
        scale_(std::sqrt(static_cast<Real>(settings.width))) {
    for (const nn::Embedding* embedding : {&source_embedding, &target_embedding}) {
      nn::init::normal(embedding->weight, rng, 0, 1 / static_cast<double>(scale_));
    }
  }

  /// Scores (B,T,words) of the token that follows each of the input's.
  Tensor operator()(const Batch& batch) {
    const Tensor source = embed(source_embedding, batch.source, 0);
    return head(transformer(source, embed(target_embedding, batch.input, 0), mask(batch.source)));
  }

  /// True (B,1,S) where the source is a token.
  static Mask mask(const Index& source) { return padding(source, Vocabulary::padding); }

  /// Source (B,S) -> memory (B,S,width).
  Tensor encode(const Index& source) {
    return transformer.encoder(embed(source_embedding, source, 0), {.mask = mask(source)});
  }

  /// The tokens (B,1) at that position -> scores (B,words) of those that follow.
  Tensor decode(const Index& tokens, std::int64_t position, std::vector<nn::DecoderCache>& cache, const Mask& memory) {
    return squeeze(head(transformer.decoder(embed(target_embedding, tokens, position), cache, memory)), 1);
  }

  nn::Embedding source_embedding, target_embedding;
  nn::PositionalEncoding positions;
  nn::Transformer transformer;
  nn::Linear head;

 private:
  static nn::TransformerConfig config(const Settings& settings) {
    return {.width = settings.width,
            .heads = settings.heads,
            .hidden = 4 * settings.width,
            .encoder_layers = settings.layers,
            .decoder_layers = settings.layers,
            .dropout = settings.dropout,
            .norm_first = true};
  }

  Tensor embed(const nn::Embedding& embedding, const Index& tokens, std::int64_t position) {
    return positions(embedding(tokens) * scale_, position);
  }

  Real scale_;
};

}  // namespace translate
