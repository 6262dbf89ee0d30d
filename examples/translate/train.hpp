// Training that can be stopped at any step and goes on bit for bit.
#pragma once

#include "autograd/ops.hpp"
#include "examples/support/csv.hpp"
#include "examples/translate/model.hpp"
#include "examples/translate/settings.hpp"
#include "nn/serialize.hpp"
#include "optim/adam.hpp"
#include "optim/clip.hpp"
#include "optim/schedule.hpp"

namespace translate {

/// A net and all that its training needs to go on.
class Training {
 public:
  Training(const Settings& settings, const Corpus& corpus)
      : settings_(settings),
        corpus_(corpus),
        rng_(settings.seed),
        net({settings.width, settings.layers, settings.heads, settings.dropout}, corpus.source.size(),
            corpus.target.size(), rng_),
        optimizer_(net.parameters(), {.learning_rate = settings.learning_rate, .beta2 = 0.98}) {
    const auto steps = static_cast<std::int64_t>(settings.steps), warmup = std::min<std::int64_t>(100, steps);
    schedule_ = optim::schedule::warmup(warmup);
    if (warmup < steps) {
      schedule_ = optim::schedule::product({schedule_, optim::schedule::cosine(steps, 0.01)});
    }
  }

  bool finished() const { return losses_.size() >= settings_.steps; }
  std::size_t step() const { return losses_.size(); }
  const std::vector<double>& losses() const { return losses_; }

  /// One step on pairs that the corpus draws; returns how many tokens they have.
  std::size_t advance() {
    const Batch batch = batch_of(corpus_.draw(step(), settings_.batch, rng_), corpus_);
    optimizer_.scale_learning_rates(rate_factor(step()));
    Tape tape;
    const Tensor loss = cross_entropy(net(batch), batch.labels, {.ignore_index = Vocabulary::padding});
    tape.backward(loss);
    const double norm = optim::clip_grad_norm(net.parameters(), 1);
    if (!std::isfinite(loss.item()) || !std::isfinite(norm)) {
      throw std::runtime_error(
          examples::text("step %zu: the loss is %g and the norm of its gradient %g; a smaller "
                         "--learning-rate may help",
                         step() + 1, double(loss.item()), norm));
    }
    optimizer_.step();
    optimizer_.zero_grad();
    losses_.push_back(loss.item());
    return batch.tokens;
  }

  double rate(std::size_t at) const { return settings_.learning_rate * rate_factor(at); }

  State state() {
    State all = nn::state_of(net);
    all.add("optimizer.", optimizer_.state());
    all.add("rng.", nn::state_of(rng_));
    all.add("settings.", settings_.state());
    Array log = empty_array({losses_.size()});
    std::copy(losses_.begin(), losses_.end(), log.data());
    all.arrays.emplace_back("log.loss", std::move(log));
    all.texts["fingerprint"] = corpus_.fingerprint;
    all.texts["source_words"] = joined(corpus_.source.list(), "\n");
    all.texts["target_words"] = joined(corpus_.target.list(), "\n");
    return all;
  }

  /// Goes on from what state() gave, its settings and texts already taken. Refuses what doesn't fit.
  void load(State all) {
    optimizer_.load_state(all.take("optimizer."));
    nn::load_state(rng_, all.take("rng."));
    const State log = all.take("log.");
    const Array* losses = log.find("loss");
    require(losses != nullptr && losses->dimension() == 1 && losses->size() <= settings_.steps, "checkpoint",
            "the losses of all steps so far must be there");
    losses_.assign(losses->begin(), losses->end());
    nn::load_state(net, all);
  }

  /// The log: a row for every step so far.
  void write_log(const std::string& path) const {
    std::vector<double> steps, rates;
    for (std::size_t i = 0; i < step(); ++i) {
      steps.push_back(static_cast<double>(i + 1));
      rates.push_back(rate(i));
    }
    examples::write_csv(path, {"step", "loss", "learning_rate"}, {steps, losses_, rates});
  }

 private:
  double rate_factor(std::size_t at) const { return schedule_(static_cast<std::int64_t>(at)); }

  Settings settings_;
  const Corpus& corpus_;
  Rng rng_;

 public:
  Translator net;

 private:
  optim::Adam optimizer_;
  optim::Schedule schedule_;
  std::vector<double> losses_;
};

}  // namespace translate
