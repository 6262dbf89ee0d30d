// Writing with a language model: one character after the other, each drawn by what the model says of it.
#pragma once

#include <numeric>
#include <stdexcept>

#include "examples/language_model/text.hpp"
#include "nn/language_model.hpp"

namespace language_model {

struct Sampling {
  double temperature = 0.8;  // logits are divided by it: 0 takes the likeliest, 1 what the model says
  std::size_t top_k = 20;    // only so many of the likeliest; 0: all
};

/// Draws from softmax(logits / temperature) over the top_k largest of `count` logits.
inline std::int64_t sample(const tapegrad::Real* logits, std::size_t count, const Sampling& how, tapegrad::Rng& rng) {
  if (!std::all_of(logits, logits + count, [](tapegrad::Real logit) { return std::isfinite(logit); })) {
    throw std::runtime_error("the net's scores of characters are not finite");
  }
  Tokens order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
  if (how.temperature == 0) return order[0];
  if (how.top_k > 0 && how.top_k < count) order.resize(how.top_k);
  Numbers up_to;
  for (const std::int64_t token : order) {
    const double weight = std::exp((double(logits[token]) - double(logits[order[0]])) / how.temperature);
    up_to.push_back(weight + (up_to.empty() ? 0 : up_to.back()));
  }
  const auto drawn = std::upper_bound(up_to.begin(), up_to.end(), rng.uniform() * up_to.back());
  return order[std::min<std::size_t>(static_cast<std::size_t>(drawn - up_to.begin()), order.size() - 1)];
}

/// `length` tokens behind those of the prompt, which must not be empty. Each costs one position, since keys and values
/// of those before are kept; when the context is full, its second half is read again as a new beginning.
inline Tokens write(tapegrad::nn::LanguageModel& net, const Tokens& prompt, std::size_t length, const Sampling& how,
                    tapegrad::Rng& rng) {
  const std::size_t context = net.config().context, vocabulary = net.config().vocabulary;
  const bool was_training = net.training();
  net.eval();
  Tokens all = prompt;
  std::vector<tapegrad::nn::KeyValues> cache;
  std::size_t seen = 0, first = 0;  // the cache holds first ... seen - 1 of them
  while (all.size() < prompt.size() + length) {
    if (all.size() - first > context) {
      cache.clear();
      first = seen = all.size() - context / 2;
    }
    const Tokens unseen(all.begin() + static_cast<std::ptrdiff_t>(seen), all.end());
    const tapegrad::Tensor logits = net(tapegrad::Index({1, unseen.size()}, unseen), cache);
    all.push_back(sample(logits.value().data() + (unseen.size() - 1) * vocabulary, vocabulary, how, rng));
    seen += unseen.size();
  }
  net.train(was_training);
  return {all.begin() + static_cast<std::ptrdiff_t>(prompt.size()), all.end()};
}

}  // namespace language_model
