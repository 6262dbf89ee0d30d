// The training of a language model.
#pragma once

#include "examples/language_model/text.hpp"
#include "examples/support/training.hpp"
#include "nn/language_model.hpp"
#include "optim/adam.hpp"

namespace language_model {

using tapegrad::State;
namespace nn = tapegrad::nn;
namespace optim = tapegrad::optim;

/// What a training is. A checkpoint holds it, and can't be gone on with by another one.
struct Settings {
  std::size_t layers = 4, heads = 4, width = 128, context = 64, batch = 32, steps = 2000, limit = 0;
  double learning_rate = 0.002, dropout = 0;
  std::uint64_t seed = 0;

  /// Calls visit(name, field, lowest, highest, help) for each.
  void each(auto&& visit) {
    visit("layers", layers, 1, 64, "of attention and feed-forward networks [4; 2 with --quick]");
    visit("heads", heads, 1, 64, "of attention in each layer, dividing the width [4; 2 with --quick]");
    visit("width", width, 1, 4096, "numbers that stand for a character [128; 64 with --quick]");
    visit("context", context, 2, 4096, "characters that are seen at a time [64; 32 with --quick]");
    visit("batch", batch, 1, 4096, "pieces of the text in a step [32; 16 with --quick]");
    visit("steps", steps, 2, 10000000, "of training [2000; 400 with --quick]");
    visit("learning-rate", learning_rate, 1e-12, 10,
          "its greatest, after a tenth of the steps [0.002; 0.005 with --quick]");
    visit("dropout", dropout, 0, 0.9, "part of the numbers left out in training [0]");
    visit("limit", limit, 0, 100000000, "characters of the text that are used, 0 for all [0; 50000 with --quick]");
  }

  void choose(const CLI::App& app, bool quick) {
    if (!quick) return;
    const auto set = examples::setter_of_defaults(app);
    set("--layers", layers, 2);
    set("--heads", heads, 2);
    set("--width", width, 64);
    set("--context", context, 32);
    set("--batch", batch, 16);
    set("--steps", steps, 400);
    set("--learning-rate", learning_rate, 0.005);
    set("--limit", limit, 50000);
  }

  /// Numbers of the maps and embeddings of such a net.
  std::size_t parameters(std::size_t vocabulary) const { return (12 * layers * width + vocabulary + context) * width; }
};

inline nn::LanguageModelConfig model_config(const Settings& settings, std::size_t vocabulary) {
  return {.vocabulary = vocabulary,
          .context = settings.context,
          .layers = settings.layers,
          .heads = settings.heads,
          .width = settings.width,
          .dropout = settings.dropout};
}

/// Weights of maps and embeddings decay, those of norms don't.
inline std::vector<optim::Group> groups(const nn::LanguageModel& net) {
  optim::Group maps, norms{{}, {}, 0.0};
  for (const tapegrad::Parameter& parameter : net.parameters()) {
    (parameter.rank() > 1 ? maps : norms).parameters.push_back(parameter);
  }
  return {maps, norms};
}

/// Up over a tenth of the steps, then down to a tenth of the rate.
inline optim::Schedule schedule(std::size_t all_steps) {
  const auto steps = static_cast<std::int64_t>(all_steps), up = std::max<std::int64_t>(1, steps / 10);
  return optim::schedule::sequence(
      {{optim::schedule::warmup(up), up}, {optim::schedule::cosine(steps - up, 0.1), steps - up}});
}

class Training : public examples::Training {
 public:
  Training(const Settings& chosen, const Corpus& text, tapegrad::Ranks& all_ranks)
      : examples::Training(chosen, text.fingerprint, schedule(chosen.steps), all_ranks),
        settings(chosen),
        corpus(text),
        net(model_config(settings, corpus.vocabulary.size()), rng),
        optimizer(groups(net), {.learning_rate = settings.learning_rate, .beta2 = 0.99, .weight_decay = 0.1}),
        gradients(ranks, net) {}

  /// One more step, on random pieces of the training part; returns how many tokens they have.
  std::size_t advance() {
    std::vector<std::size_t> starts(settings.batch);
    for (std::size_t& start : starts) start = rng.below(corpus.training.size() - settings.context);
    const auto mine = ranks.share(starts.size());
    const auto part = [&] {
      const auto row = [&](std::size_t at) { return starts.begin() + static_cast<std::ptrdiff_t>(at); };
      const Batch batch = batch_at(corpus.training, {row(mine.begin), row(mine.end)}, settings.context);
      const auto loss = cross_entropy(net(batch.seen), batch.next, {.reduction = tapegrad::Reduction::sum});
      return loss / static_cast<tapegrad::Real>(settings.batch * settings.context);
    };
    learn(mine.size() > 0, settings.dropout, part, gradients, optimizer);
    return settings.batch * settings.context;
  }

  /// Mean cross-entropy in nats on at most so many pieces of the validation part, evenly spaced. Draws no random
  /// numbers.
  double validation_loss(std::size_t pieces) {
    const std::size_t length = settings.context, all = (corpus.validation.size() - 1) / length;
    const std::size_t count = std::min(all, pieces);
    net.eval();
    double sum = 0;
    for (std::size_t from = 0; from < count;) {
      std::vector<std::size_t> starts;
      for (; from < count && starts.size() < 32; ++from) starts.push_back(from * all / count * length);
      const Batch batch = batch_at(corpus.validation, starts, length);
      sum += static_cast<double>(starts.size()) * cross_entropy(net(batch.seen), batch.next).item();
    }
    net.train();
    return static_cast<tapegrad::Real>(sum / static_cast<double>(count));  // as a checkpoint keeps it
  }

  State state() const {
    State all = state_of(settings, net, optimizer);
    all.texts["vocabulary"] = corpus.vocabulary.text();
    all.texts["fingerprint"] = corpus.fingerprint;
    return all;
  }

  void load(const State& all, const std::string& path) { examples::Training::load(all, path, net, optimizer); }

  const Settings settings;
  const Corpus& corpus;
  nn::LanguageModel net;
  optim::AdamW optimizer;
  tapegrad::distributed::GradientSum gradients;
};

}  // namespace language_model
