// A training that can be stopped after any step, and gone on with bit for bit.
#pragma once

#include <array>
#include <limits>
#include <optional>

#include "examples/language_model/text.hpp"
#include "nn/language_model.hpp"
#include "nn/serialize.hpp"
#include "optim/adam.hpp"
#include "optim/clip.hpp"
#include "optim/schedule.hpp"

namespace language_model {

using tapegrad::Array;
using tapegrad::Real;
using tapegrad::Shape;
using tapegrad::State;
namespace nn = tapegrad::nn;
namespace optim = tapegrad::optim;

/// What a training is. A checkpoint holds it, and can't be gone on with by another one.
struct Settings {
  std::uint64_t layers = 4;
  std::uint64_t heads = 4;
  std::uint64_t width = 128;
  std::uint64_t context = 64;
  std::uint64_t batch = 32;
  std::uint64_t steps = 2000;
  std::uint64_t limit = 0;  // characters of the text that are used; 0: all
  double learning_rate = 0.002;
  double dropout = 0;
};

/// A setting that the user may choose, and a checkpoint holds.
template <class Number>
struct Choice {
  const char* name;
  Number Settings::*member;
  Number low, high;
  const char* about;
};
constexpr std::array<Choice<std::uint64_t>, 6> kCounts{{
    {"layers", &Settings::layers, 1, 64, "of attention and feed-forward networks"},
    {"heads", &Settings::heads, 1, 64, "of attention in each layer; divides the width"},
    {"width", &Settings::width, 1, 4096, "numbers that stand for a character"},
    {"context", &Settings::context, 2, 4096, "characters that are seen at a time"},
    {"batch", &Settings::batch, 1, 4096, "pieces of the text in a step"},
    {"steps", &Settings::steps, 2, 10'000'000, "of training"},
}};
constexpr std::array<Choice<double>, 2> kNumbers{{
    {"learning-rate", &Settings::learning_rate, 1e-12, 10, "its greatest, after a tenth of the steps"},
    {"dropout", &Settings::dropout, 0, 0.9, "part of the numbers left out in training"},
}};

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
inline optim::Schedule schedule(std::uint64_t all_steps) {
  const auto steps = static_cast<std::int64_t>(all_steps), up = std::max<std::int64_t>(1, steps / 10);
  return optim::schedule::sequence(
      {{optim::schedule::warmup(up), up}, {optim::schedule::cosine(steps - up, 0.1), steps - up}});
}

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

class Training {
 public:
  Training(const Settings& chosen, const Corpus& text, std::uint64_t seed)
      : settings(chosen),
        corpus(text),
        rng(seed),
        net(model_config(settings, corpus.vocabulary.size()), rng),
        optimizer(groups(net), {.learning_rate = settings.learning_rate, .beta2 = 0.99, .weight_decay = 0.1}) {}

  /// Steps that are done.
  std::size_t step() const { return losses.size(); }
  bool done() const { return step() == settings.steps; }
  double rate(std::size_t at) const { return settings.learning_rate * factor(static_cast<std::int64_t>(at)); }

  /// One more step, on random pieces of the training part.
  void advance() {
    std::vector<std::size_t> starts(settings.batch);
    for (std::size_t& start : starts) start = rng.below(corpus.training.size() - settings.context);
    const Batch batch = batch_at(corpus.training, starts, settings.context);
    tapegrad::Tape tape;
    const tapegrad::Tensor loss = cross_entropy(net(batch.seen), batch.next);
    tape.backward(loss);
    const double norm = optim::clip_grad_norm(optimizer.parameters(), 1);
    if (!std::isfinite(loss.item()) || !std::isfinite(norm)) {
      throw std::runtime_error("step " + std::to_string(step() + 1) + ": the loss is " +
                               tapegrad::to_text(loss.item()) + " and the norm of its gradient " +
                               tapegrad::to_text(norm) + "; a smaller --learning-rate may help");
    }
    optimizer.scale_learning_rates(factor(static_cast<std::int64_t>(step())));
    optimizer.step();
    optimizer.zero_grad();
    losses.push_back(loss.item());
    validation.push_back(kNotMeasured);
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
    return static_cast<Real>(sum / static_cast<double>(count));  // as a checkpoint keeps it
  }

  void save(const std::string& path) const {
    State all = nn::state_of(net);
    all.add("optimizer.", optimizer.state());
    all.add("rng.", nn::state_of(rng));
    all.arrays.emplace_back("log.loss", array_of(losses));
    all.arrays.emplace_back("log.validation", array_of(validation));
    all.texts["program"] = "language_model";
    all.texts["vocabulary"] = corpus.vocabulary.text();
    all.set_count("text", fingerprint(corpus));
    all.set_count("limit", settings.limit);
    for (const auto& choice : kCounts) all.set_count(choice.name, settings.*choice.member);
    for (const auto& choice : kNumbers) all.set_number(choice.name, settings.*choice.member);
    nn::save_checkpoint(path, all);
  }

  /// Takes over everything but the settings from a checkpoint's state. Throws tapegrad::Error when it does not fit.
  void load(State all) {
    const auto log = [&](const char* name) {
      const Array* array = all.find(name);
      tapegrad::require(array != nullptr && array->dimension() == 1, "load", "a row of numbers must be there", name);
      return Numbers(array->storage().begin(), array->storage().end());
    };
    losses = log("log.loss");
    validation = log("log.validation");
    tapegrad::require(losses.size() == validation.size() && losses.size() <= settings.steps, "load",
                      "there must be a loss for each step", losses.size(), validation.size());
    all.take("log.");
    optimizer.load_state(all.take("optimizer."));
    nn::load_state(rng, all.take("rng."));
    nn::load_state(net, all);
  }

  const Settings settings;
  const Corpus& corpus;
  tapegrad::Rng rng;
  nn::LanguageModel net;
  optim::AdamW optimizer;
  Numbers losses;      // of each step
  Numbers validation;  // after each step, mostly not measured

 private:
  static Array array_of(const Numbers& numbers) {
    Array array = tapegrad::empty_array({numbers.size()});
    std::transform(numbers.begin(), numbers.end(), array.storage().begin(), [](double x) { return Real(x); });
    return array;
  }

  optim::Schedule factor = schedule(settings.steps);
};

/// The settings that a checkpoint's state holds. Throws BadInput when it is none of this program, or its settings are
/// out of range or not those of its arrays, so that no model is made that is larger than the file.
inline Settings settings_of(const State& state) {
  const auto program = state.texts.find("program"), vocabulary = state.texts.find("vocabulary");
  if (program == state.texts.end() || program->second != "language_model" || vocabulary == state.texts.end()) {
    throw BadInput("it is no checkpoint of language_model");
  }
  Settings settings;
  settings.limit = state.count("limit");
  const auto check = [](const auto& choice, auto number) {
    if (number >= choice.low && number <= choice.high) return number;
    throw BadInput(std::string("its number of ") + choice.name + " is out of range");
  };
  for (const auto& choice : kCounts) settings.*choice.member = check(choice, state.count(choice.name));
  for (const auto& choice : kNumbers) settings.*choice.member = check(choice, state.number(choice.name));
  const std::size_t characters = characters_of(vocabulary->second, "its vocabulary").size();
  const auto has_shape = [&](const std::string& name, const Shape& shape) {
    const Array* array = state.find(name);
    return array != nullptr && array->shape() == shape;
  };
  const std::size_t width = settings.width;
  bool fits = width % settings.heads == 0 && has_shape("token_embedding.weight", {characters, width}) &&
              has_shape("position_embedding.weight", {settings.context, width});
  for (std::uint64_t i = 0; i < settings.layers; ++i) {
    fits &= has_shape("layers." + std::to_string(i) + ".linear1.weight", {4 * width, width});
  }
  if (!fits) throw BadInput("its arrays are not of the model that it describes");
  return settings;
}

}  // namespace language_model
