// The training of a Translator.
#pragma once

#include "examples/support/training.hpp"
#include "examples/translate/model.hpp"
#include "examples/translate/settings.hpp"
#include "optim/adam.hpp"

namespace translate {

/// Up over 100 steps, then down to a hundredth of the rate.
inline optim::Schedule schedule(std::size_t all_steps) {
  const auto steps = static_cast<std::int64_t>(all_steps), up = std::min<std::int64_t>(100, steps);
  const optim::Schedule warmup = optim::schedule::warmup(up);
  return up < steps ? optim::schedule::product({warmup, optim::schedule::cosine(steps, 0.01)}) : warmup;
}

class Training : public examples::Training {
 public:
  Training(const Settings& chosen, const Corpus& pairs, tapegrad::Ranks& all_ranks)
      : examples::Training(chosen, pairs.fingerprint, schedule(chosen.steps), all_ranks),
        settings(chosen),
        corpus(pairs),
        net(settings, corpus.source.size(), corpus.target.size(), rng),
        optimizer(net.parameters(), {.learning_rate = settings.learning_rate, .beta2 = 0.98}),
        gradients(ranks, net) {}

  /// One step on pairs that the corpus draws; returns how many tokens they have.
  std::size_t advance() {
    const std::vector<Pair> pairs = corpus.draw(step(), settings.batch, rng);
    std::size_t sources = 0, labels = 0;
    for (const Pair& pair : pairs) {
      sources += pair.source.size() + 1;
      labels += pair.target.size() + 1;
    }
    const auto mine = ranks.share(pairs.size());
    const auto part = [&] {
      const auto pair = [&](std::size_t at) { return pairs.begin() + static_cast<std::ptrdiff_t>(at); };
      const Batch batch = batch_of({pair(mine.begin), pair(mine.end)}, corpus);
      const Tensor loss =
          cross_entropy(net(batch), batch.labels, {.reduction = Reduction::sum, .ignore_index = Vocabulary::padding});
      return loss / static_cast<Real>(labels);
    };
    learn(mine.size() > 0, settings.dropout, part, gradients, optimizer);
    return sources + labels;
  }

  State state() const {
    State all = state_of(settings, net, optimizer);
    all.texts["fingerprint"] = corpus.fingerprint;
    all.texts["source_words"] = joined(corpus.source.list(), "\n");
    all.texts["target_words"] = joined(corpus.target.list(), "\n");
    return all;
  }

  void load(const State& all, const std::string& path) { examples::Training::load(all, path, net, optimizer); }

  const Settings settings;
  const Corpus& corpus;
  Translator net;
  optim::Adam optimizer;
  tapegrad::distributed::GradientSum gradients;
};

}  // namespace translate
