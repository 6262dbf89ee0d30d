// Translations from a net: the likeliest token each time, or a search among several.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "examples/translate/model.hpp"

namespace translate {

/// A net that has read sources (B,S), and writes their translations token by token.
class Writer {
 public:
  Writer(Translator& net, const Index& source)
      : net_(net), mask_(Translator::mask(source)), cache_(net.transformer.decoder.start(net.encode(source))) {}

  /// What was written last (B,1) -> scores (B,words) of what follows.
  Tensor scores(const Index& tokens) { return net_.decode(tokens, at_++, cache_, mask_); }

  /// Goes on with these of the B translations.
  void keep(const Index& chosen) {
    for (nn::DecoderCache& layer : cache_) {
      for (Tensor* kept : {&layer.self.keys, &layer.self.values, &layer.memory.keys, &layer.memory.values}) {
        *kept = index_select(*kept, 0, chosen);
      }
    }
  }

 private:
  Translator& net_;
  Mask mask_;
  std::vector<nn::DecoderCache> cache_;
  std::int64_t at_ = 0;
};

/// The scores (B,words) without the tokens that no translation has: padding and the start.
inline Tensor of_words(const Tensor& scores) {
  const Array& all = scores.value();
  if (!std::all_of(all.begin(), all.end(), [](Real score) { return std::isfinite(score); })) {
    throw std::runtime_error("the net's scores of words are not finite");
  }
  Array never = empty_array({scores.extent(1)});
  std::fill_n(never.data(), never.size(), Real(0));
  for (const std::int64_t token : {Vocabulary::padding, Vocabulary::start}) {
    never.data()[token] = -std::numeric_limits<Real>::infinity();
  }
  return scores + Tensor(never);
}

/// The likeliest token each time, until the end or `longest` tokens: B translations from a Writer of B sources.
inline std::vector<Ids> greedy(auto&& writer, std::size_t batch, std::size_t longest) {
  std::vector<Ids> found(batch);
  std::vector<bool> done(batch, false);
  Index tokens(Shape{batch, 1}, Ids(batch, Vocabulary::start));
  for (std::size_t at = 0; at < longest && std::count(done.begin(), done.end(), false) > 0; ++at) {
    const Index next = argmax(of_words(writer.scores(tokens)), 1);
    for (std::size_t i = 0; i < batch; ++i) {
      if (next.data()[i] == Vocabulary::end) done[i] = true;
      if (!done[i]) found[i].push_back(next.data()[i]);
    }
    tokens = Index(Shape{batch, 1}, next);
  }
  return found;
}

/// The first tokens of a translation, and the logarithm of their probability.
struct Hypothesis {
  Ids tokens;
  double log_probability = 0;
  std::int64_t parent = 0;  // what it is one token longer than

  /// D2L's, over tokens with the end: without the division, short translations would always win.
  double score() const { return score_at(tokens.size()); }
  /// The score if nothing that is added were unlikely; the best that can become of it in so many tokens.
  double score_at(std::size_t length) const { return log_probability / std::pow(static_cast<double>(length), 0.75); }
};

/// The `width` likeliest ways to go on from any hypothesis, likeliest first.
inline std::vector<Hypothesis> likeliest(const std::vector<Hypothesis>& live, const Tensor& scores, std::size_t width) {
  const Tensor log_probabilities = log_softmax(of_words(scores), 1);
  const std::size_t vocabulary = scores.extent(1);
  const Real* const row = log_probabilities.value().data();
  const auto total = [&](std::int64_t i) {
    const double sum = live[static_cast<std::size_t>(i) / vocabulary].log_probability + static_cast<double>(row[i]);
    return std::isnan(sum) ? -INFINITY : sum;  // a net that has diverged: NaN has no place in an order
  };
  Ids order(live.size() * vocabulary);
  std::iota(order.begin(), order.end(), 0);
  const auto wanted = static_cast<std::ptrdiff_t>(std::min(width, order.size()));
  std::partial_sort(order.begin(), order.begin() + wanted, order.end(),
                    [&](std::int64_t a, std::int64_t b) { return total(a) != total(b) ? total(a) > total(b) : a < b; });
  order.resize(static_cast<std::size_t>(wanted));
  std::vector<Hypothesis> next;
  for (const std::int64_t i : order) {
    const auto parent = static_cast<std::size_t>(i) / vocabulary;
    next.push_back({live[parent].tokens, total(i), static_cast<std::int64_t>(parent)});
    next.back().tokens.push_back(i % static_cast<std::int64_t>(vocabulary));
  }
  return next;
}

/// Beam search: the best translation by score, from a Writer of one source. Of all hypotheses of a length, the `width`
/// likeliest are kept, until none of them can become better than what is finished.
inline Ids beam_search(auto&& writer, std::size_t longest, std::size_t width) {
  std::vector<Hypothesis> live(1);
  std::optional<Hypothesis> best;
  Index tokens{{Vocabulary::start}};
  for (std::size_t at = 0; at < longest; ++at) {
    std::vector<Hypothesis> next = likeliest(live, writer.scores(tokens), width);
    live.clear();
    Ids parents, last;
    for (Hypothesis& hypothesis : next) {
      if (hypothesis.tokens.back() == Vocabulary::end) {
        if (!best || hypothesis.score() > best->score()) best = std::move(hypothesis);
      } else {
        parents.push_back(hypothesis.parent);
        last.push_back(hypothesis.tokens.back());
        live.push_back(std::move(hypothesis));
      }
    }
    if (live.empty() || (best && live.front().score_at(longest) <= best->score())) break;
    writer.keep(Index(Shape{parents.size()}, parents));
    tokens = Index(Shape{last.size(), 1}, last);
  }
  if (!best) return live.front().tokens;
  best->tokens.pop_back();
  return best->tokens;
}

/// The translations of texts, greedy in batches for a beam of 1; fewer when it `stops`.
inline std::vector<Tokens> translations(
    Translator& net, const Corpus& corpus, const std::vector<Tokens>& texts, std::size_t longest, std::size_t beam,
    const std::function<bool()>& stops = [] { return false; }) {
  constexpr std::size_t at_once = 100;
  std::vector<Tokens> found;
  net.eval();
  for (std::size_t first = 0; first < texts.size() && !stops();) {
    std::vector<Ids> rows;
    const std::size_t count = beam == 1 ? at_once : 1;
    for (; rows.size() < count && first < texts.size(); ++first) rows.push_back(ended(corpus.source.ids(texts[first])));
    const Index source = padded(rows);
    Writer writer(net, source);
    const auto ids =
        beam == 1 ? greedy(writer, rows.size(), longest) : std::vector<Ids>{beam_search(writer, longest, beam)};
    for (const Ids& each : ids) found.push_back(corpus.target.tokens(each));
  }
  net.train();
  return found;
}

}  // namespace translate
