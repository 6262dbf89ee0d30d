// A classifier of sentences: one linear map on their embeddings, learnt from labelled lines, the encoder with it or
// not.
#pragma once

#include <set>

#include "autograd/ops.hpp"
#include "examples/sentence_search/index.hpp"
#include "examples/support/csv.hpp"
#include "nn/loss.hpp"
#include "optim/adam.hpp"

namespace sentence_search {

namespace nn = tapegrad::nn;
using tapegrad::Tensor;

struct Settings {
  std::size_t epochs = 10;
  double learning_rate = 0.05;  // of the map
  double encoder_rate = 0;      // of the encoder; 0: it stays as it is
  double held_out = 0.2;        // part of the lines that is not learnt from
};

inline void add_options(CLI::App& app, Settings& settings) {
  using examples::add_number;
  add_number(app, "--epochs", settings.epochs, 1, 100'000, "how often --train sees each line [10]");
  add_number(app, "--learning-rate", settings.learning_rate, 1e-12, 100, "of the classifier [0.05]");
  add_number(app, "--encoder-rate", settings.encoder_rate, 0, 100,
             "learning rate of the encoder, 2e-5 say; 0: it is frozen [0]");
  add_number(app, "--held-out", settings.held_out, 0.01, 0.9, "part of the lines that tells the accuracy [0.2]");
}

// ---- labelled lines -------------------------------------------------------------------------------------------------

struct Labelled {
  std::vector<std::string> labels;    // sorted
  std::vector<std::int64_t> classes;  // of each text, a position in labels
  std::vector<SentenceEncoder::Tokens> texts;
};

/// Lines of a label, a tab and a text; blank ones are left out. Throws BadInput for another line, and where there are
/// no two labels.
inline Labelled read_labelled(const std::string& path, const SentenceEncoder& encoder) {
  std::vector<std::pair<std::string, std::string>> rows;
  std::size_t number = 0;
  for (const std::string& line : lines_of(examples::read_text(path))) {
    ++number;
    if (is_blank(line)) continue;
    const std::size_t tab = line.find('\t');
    if (tab == line.npos || tab == 0 || is_blank(line.substr(tab))) {
      throw BadInput(path + text(": line %zu must be a label, a tab and a text", number));
    }
    rows.emplace_back(line.substr(0, tab), line.substr(tab + 1));
  }
  Labelled labelled;
  for (const auto& [label, sentence] : rows) labelled.labels.push_back(label);
  std::sort(labelled.labels.begin(), labelled.labels.end());
  labelled.labels.erase(std::unique(labelled.labels.begin(), labelled.labels.end()), labelled.labels.end());
  if (labelled.labels.size() < 2) throw BadInput(path + ": must have lines of two labels or more");
  std::size_t bytes = 0;
  for (const std::string& label : labelled.labels) bytes += tapegrad::in_quotes(label).size() + 30;  // and its name
  if (bytes > kLongestText) throw BadInput(path + ": the labels are too long; 95 MB are possible");
  for (const auto& [label, sentence] : rows) {
    const auto at = std::lower_bound(labelled.labels.begin(), labelled.labels.end(), label);
    labelled.classes.push_back(at - labelled.labels.begin());
    labelled.texts.push_back(encoder.tokens(sentence));
  }
  return labelled;
}

// ---- the classifier -------------------------------------------------------------------------------------------------

struct Classifier {
  std::vector<std::string> labels;
  std::unique_ptr<nn::Linear> map;  // E numbers to a score for each label
};

inline void save_classifier(const Classifier& classifier, const std::string& folder) {
  State state = nn::state_of(*classifier.map);
  for (std::size_t i = 0; i < classifier.labels.size(); ++i) {
    state.texts["label." + std::to_string(i)] = classifier.labels[i];
  }
  nn::save_checkpoint(folder + "/classifier.safetensors", state);
}

/// Throws BadInput for a folder that has none, or not one for embeddings of this width.
inline Classifier load_classifier(const std::string& folder, std::size_t width) {
  const std::string path = folder + "/classifier.safetensors";
  std::error_code none;
  if (!std::filesystem::exists(path, none)) throw BadInput(folder + ": has no classifier; --train makes one");
  return examples::reading(path, [&] {
    State state = nn::load_checkpoint(path);
    Classifier classifier;
    for (std::size_t i = 0; state.texts.contains("label." + std::to_string(i)); ++i) {
      classifier.labels.push_back(state.texts["label." + std::to_string(i)]);
      examples::require_text(classifier.labels.back(), path + text(": label %zu", i));
    }
    const std::set<std::string> different(classifier.labels.begin(), classifier.labels.end());
    if (different.size() < classifier.labels.size()) throw BadInput(path + ": the labels must differ");
    const std::size_t count = classifier.labels.size();
    tapegrad::require_arrays("classifier", state, {{"weight", {count, width}}, {"bias", {count}}}, true);
    if (count < 2) throw BadInput(path + ": must have two labels or more");
    if (examples::find_not_finite(state)) throw BadInput(path + ": all numbers must be finite");
    tapegrad::Rng rng;
    classifier.map = std::make_unique<nn::Linear>(width, count, rng);
    nn::load_state(*classifier.map, state);
    return classifier;
  });
}

/// The scores of each row's labels, (N,E) -> (N,labels). Throws where they are not finite.
inline Tensor scores(const Classifier& classifier, const Tensor& rows) {
  Tensor all = (*classifier.map)(rows);
  const bool finite = std::all_of(all.value().begin(), all.value().end(), [](Real x) { return std::isfinite(x); });
  if (!finite) throw std::runtime_error("the scores of the labels are not finite");
  return all;
}

/// The likeliest label of each row (N,E).
inline std::vector<std::int64_t> likeliest(const Classifier& classifier, const Tensor& rows) {
  const tapegrad::Index best = tapegrad::argmax(scores(classifier, rows), 1);
  return {best.begin(), best.end()};
}

/// "0.93  label": the likeliest label of a text, and its probability.
inline std::string classify(const Classifier& classifier, SentenceEncoder& encoder, const std::string& sentence) {
  const Tensor row(encoder(std::vector<std::string>{sentence}));
  const Tensor probabilities = tapegrad::softmax(scores(classifier, row), 1);
  const Array& numbers = probabilities.value();
  const auto best = std::max_element(numbers.data(), numbers.data() + numbers.size()) - numbers.data();
  return text("%5.3f  ", static_cast<double>(numbers.data()[best])) + classifier.labels[std::size_t(best)];
}

// ---- training -------------------------------------------------------------------------------------------------------

/// Learns from the file, tells what part of the held-out lines it gets right, and saves encoder and classifier as the
/// folder, both or neither. Ctrl-C ends the training after a step, and what was learnt is saved. Throws where a loss is
/// not finite.
inline void train(SentenceEncoder& encoder, const std::string& path, const std::string& folder, std::size_t batch,
                  const Settings& settings, const examples::Common& common) {
  const Labelled all = read_labelled(path, encoder);
  const std::size_t count = all.texts.size();
  const auto held = static_cast<std::size_t>(std::lround(settings.held_out * static_cast<double>(count)));
  if (held == 0 || held == count) throw BadInput(path + text(": %zu lines are too few", count));
  tapegrad::Rng rng(common.seed);
  std::vector<std::int64_t> order = rng.permutation(count);
  const std::vector<std::int64_t> asked(order.end() - static_cast<std::ptrdiff_t>(held), order.end());
  order.resize(count - held);

  Classifier classifier{all.labels,
                        std::make_unique<nn::Linear>(encoder.bert().config().width, all.labels.size(), rng)};
  const bool frozen = settings.encoder_rate == 0;
  std::vector<tapegrad::optim::Group> groups{{classifier.map->parameters(), settings.learning_rate, {}}};
  if (!frozen) groups.push_back({encoder.bert().parameters(), settings.encoder_rate, {}});
  tapegrad::optim::AdamW optimizer(groups, {.eps = 1e-6});  // BERT's

  const Tensor known = frozen ? Tensor(encoder(all.texts, batch)) : Tensor();  // embedded once for all epochs
  const auto embedded = [&](const std::vector<std::int64_t>& which) {
    if (frozen) return tapegrad::index_select(known, 0, tapegrad::Index(tapegrad::Shape{which.size()}, which));
    std::vector<SentenceEncoder::Tokens> texts;
    for (const std::int64_t i : which) texts.push_back(all.texts[std::size_t(i)]);
    return encoder.embed(texts);
  };
  const auto batch_at = [&](const std::vector<std::int64_t>& list, std::size_t at) {
    const auto first = list.begin() + static_cast<std::ptrdiff_t>(at);
    return std::vector<std::int64_t>(first, first + static_cast<std::ptrdiff_t>(std::min(batch, list.size() - at)));
  };
  const auto right = [&] {
    std::size_t hits = 0;
    for (std::size_t at = 0; at < asked.size(); at += batch) {
      const std::vector<std::int64_t> some = batch_at(asked, at), found = likeliest(classifier, embedded(some));
      for (std::size_t i = 0; i < some.size(); ++i) hits += found[i] == all.classes[std::size_t(some[i])];
    }
    return hits;
  };
  const auto percent = [&](std::size_t hits) { return 100 * static_cast<double>(hits) / static_cast<double>(held); };

  show(text("%zu lines with %zu labels; %zu of the lines are held out", count, all.labels.size(), held));
  const std::size_t steps = settings.epochs * ((order.size() + batch - 1) / batch);
  std::string log = "step,loss\n";
  std::size_t step = 0, hits = 0;
  const examples::Interrupt interrupt;
  {
    examples::Progress progress("step", steps, common.quiet);
    for (std::size_t epoch = 0; epoch < settings.epochs && !interrupt.came(); ++epoch) {
      const std::vector<std::int64_t> shuffled = rng.permutation(order.size());
      std::vector<std::int64_t> list;
      for (const std::int64_t i : shuffled) list.push_back(order[std::size_t(i)]);
      double sum = 0;
      std::size_t seen = 0;
      do {
        const std::vector<std::int64_t> some = batch_at(list, seen);
        std::vector<std::int64_t> classes;
        for (const std::int64_t i : some) classes.push_back(all.classes[std::size_t(i)]);
        optimizer.zero_grad();
        tapegrad::Tape tape;
        const Tensor loss = tapegrad::cross_entropy((*classifier.map)(embedded(some)),
                                                    tapegrad::Index(tapegrad::Shape{classes.size()}, classes));
        const double value = loss.item();
        if (!std::isfinite(value)) throw std::runtime_error(text("step %zu: the loss is %g", step + 1, value));
        tape.backward(loss);
        optimizer.step();
        sum += value * static_cast<double>(some.size());
        log += std::to_string(++step) + ',' + examples::csv_number(value) + '\n';
        progress.update(step, {value, settings.learning_rate, 0});
        seen += some.size();
      } while (seen < list.size() && !interrupt.came());
      hits = right();
      progress.print(text("epoch %3zu: loss %.4f, %.1f %% of the held-out lines right", epoch + 1,
                          sum / static_cast<double>(seen), percent(hits)));
    }
  }
  std::vector<std::size_t> counts(all.labels.size());
  for (const std::int64_t i : asked) ++counts[std::size_t(all.classes[std::size_t(i)])];
  show(text("right: %zu of %zu held-out lines, %.1f %%; by the most frequent label alone: %zu", hits, held,
            percent(hits), *std::max_element(counts.begin(), counts.end())));
  for (const State& state : {nn::state_of(encoder.bert()), nn::state_of(*classifier.map)}) {
    if (const std::string* name = examples::find_not_finite(state)) {
      throw std::runtime_error(tapegrad::in_quotes(*name) + " is not finite; a smaller learning rate may help");
    }
  }
  examples::write_folder(folder, [&](const std::string& fresh) {
    encoder.save(fresh);
    save_classifier(classifier, fresh);
  });
  examples::write_file(common.out + "/sentence_search.csv", log);
  if (interrupt.came()) show(text("stopped after step %zu of %zu", step, steps));
  show("saved: " + folder);
}

}  // namespace sentence_search
