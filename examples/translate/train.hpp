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
  Training(const Settings& settings, const Corpus& corpus, tapegrad::Ranks& all_ranks)
      : examples::Training(settings, schedule(settings.steps), all_ranks),
        settings_(settings),
        corpus_(corpus),
        net(settings, corpus.source.size(), corpus.target.size(), rng),
        optimizer_(net.parameters(), {.learning_rate = settings.learning_rate, .beta2 = 0.98}),
        gradients_(ranks, net) {}

  /// One step on pairs that the corpus draws; returns how many tokens they have.
  std::size_t advance() {
    const std::vector<Pair> pairs = corpus_.draw(step(), settings_.batch, rng);
    std::size_t sources = 0, labels = 0;
    for (const Pair& pair : pairs) {
      sources += pair.source.size() + 1;
      labels += pair.target.size() + 1;
    }
    const auto mine = ranks.share(pairs.size());
    const auto part = [&] {
      const auto pair = [&](std::size_t at) { return pairs.begin() + static_cast<std::ptrdiff_t>(at); };
      const Batch batch = batch_of({pair(mine.begin), pair(mine.end)}, corpus_);
      const Tensor loss =
          cross_entropy(net(batch), batch.labels, {.reduction = Reduction::sum, .ignore_index = Vocabulary::padding});
      return loss / static_cast<Real>(labels);
    };
    learn(mine.size() > 0, settings_.dropout, part, gradients_, optimizer_);
    return sources + labels;
  }

  State state() const {
    State all = state_of(settings_, net, optimizer_);
    all.texts["fingerprint"] = corpus_.fingerprint;
    all.texts["source_words"] = joined(corpus_.source.list(), "\n");
    all.texts["target_words"] = joined(corpus_.target.list(), "\n");
    return all;
  }

  void load(const State& all, const std::string& path) { examples::Training::load(all, path, net, optimizer_); }

 private:
  Settings settings_;
  const Corpus& corpus_;

 public:
  Translator net;

 private:
  optim::Adam optimizer_;
  tapegrad::distributed::GradientSum gradients_;
};

}  // namespace translate
