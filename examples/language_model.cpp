// A language model of characters: a Transformer with a decoder only learns what character comes next in a text, and
// then writes text of its own. It sees single characters and nothing else: that there are words, and which, is what it
// has to find out. The first nine tenths of the text are learnt from, and the rest says how much was learnt: the loss
// there is the mean of -log p(next character), in nats.
//
// A training can be stopped at any time (Ctrl-C) and gone on with (--resume), with the same numbers bit for bit.
#include "autograd/threads.hpp"
#include "examples/language_model/sampling.hpp"
#include "examples/language_model/training.hpp"
#include "examples/support/ranks.hpp"

using namespace language_model;
using examples::add_file, examples::add_number, examples::draw, examples::expect, examples::show, examples::text;

namespace {

const std::string kShipped = EXAMPLE_DATA "/pride_and_prejudice.txt";
constexpr std::size_t kPieces = 128;  // of the validation part that a measurement looks at; the last one looks at all

const std::vector<std::string> kWritten = {"language_model", "language_model_losses"};

struct Options {
  std::string text = kShipped;
  examples::Files files;
  Settings settings;
  std::string prompt;
  int threads = 1;  // others that use the machine make several wait for each other
  std::size_t length = 500;
  Sampling sampling;
};

// ---- beginning ------------------------------------------------------------------------------------------------------

Vocabulary vocabulary_of(const State& state, const std::string& path) {
  const std::string& text = state.text("vocabulary");
  examples::require_text(text, path + ": its vocabulary");
  return Vocabulary(utf8::decoded(text));
}

/// The text to learn from, which must be the one that the checkpoint, if any, was trained on. To use a saved model, its
/// vocabulary is all that is needed.
Corpus corpus_for(const Options& options, const std::optional<State>& saved) {
  const std::string& path = options.files.saved();
  if (saved) {
    const Vocabulary vocabulary = vocabulary_of(*saved, path);
    examples::require_parameters(path, *saved, options.settings.parameters(vocabulary.size()));
    if (!options.files.load.empty()) return Corpus{vocabulary};
  }
  Corpus corpus = read_corpus(options.text, options.settings.limit, options.settings.context);
  if (saved &&
      (saved->text("fingerprint") != corpus.fingerprint || saved->text("vocabulary") != corpus.vocabulary.text())) {
    throw BadInput(path + ": was trained on another text than " + options.text + "; give its file by --text");
  }
  return corpus;
}

/// What is written first: the prompt, or else the beginning of a line.
Tokens start_of(const Options& options, const Vocabulary& vocabulary) {
  examples::require_text(options.prompt, "--prompt");
  return vocabulary.tokens(options.prompt.empty() ? U"\n" : utf8::decoded(options.prompt), "--prompt");
}

// ---- training -------------------------------------------------------------------------------------------------------

/// `length` characters that the model writes now.
std::string sample(Training& training, const Tokens& start, std::size_t length, const Sampling& how,
                   std::uint64_t seed) {
  tapegrad::Rng rng(seed);
  return training.corpus.vocabulary.text(write(training.net, start, length, how, rng));
}

bool train(Training& training, const Tokens& start, const Options& options, const examples::Common& common) {
  if (!training.done() && !common.quiet) show("   step   loss   validation   it writes");
  return examples::train(training, options.files, common, "language_model.csv", "validation_loss", [&](auto& progress) {
    const std::size_t step = training.step();
    if (!training.done() && step % examples::interval(training) != 0) return;
    training.measured.back() = training.validation_loss(training.done() ? SIZE_MAX : kPieces);
    std::string line = sample(training, start, 44, options.sampling, common.seed);
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t' || c == '\f'; }, ' ');
    progress.print(text("%7zu  %5.3f  %11.3f   ", step, training.losses.back(), training.measured.back()) + line);
  });
}

// ---- what it shows --------------------------------------------------------------------------------------------------

void show_losses(const Training& training, double unigram, const std::string& out) {
  Numbers at, measured, learnt;  // training losses as means since the last measurement
  for (std::size_t i = 0, first = 0; i < training.step(); ++i) {
    if (std::isnan(training.measured[i])) continue;
    at.push_back(static_cast<double>(i + 1));
    measured.push_back(training.measured[i]);
    const auto begin = training.losses.begin();
    learnt.push_back(std::accumulate(begin + std::ptrdiff_t(first), begin + std::ptrdiff_t(i + 1), 0.0) /
                     static_cast<double>(i + 1 - first));
    first = i + 1;
  }
  examples::Panel panel{"",
                        "steps of training",
                        "cross-entropy in nats",
                        {{"training", at, learnt, examples::Mark::line_points},
                         {"validation", at, measured, examples::Mark::line_points}},
                        {{false, unigram, "frequencies of characters"}}};
  show("\n" + examples::terminal_plot(panel) + "  " + out + "/language_model.csv");
  draw(examples::Figure{"A language model learns what comes next", {panel}}, out + "/language_model_losses");
}

void job(examples::Common common, Options options, tapegrad::Ranks& ranks) {
  const CLI::App& app = *common.command_line;
  examples::Files& files = options.files;
  Settings& settings = options.settings;
  settings.seed = common.seed;
  files.check(app, ranks, {"--text"});
  std::optional<State> saved;
  if (files.saved().empty()) {
    settings.choose(app, common.quick);
    examples::require_heads(settings, "--heads");
  } else {
    saved = examples::read_checkpoint(files, settings, app, ranks);
  }
  if (!files.resume.empty()) {
    examples::require_seed(settings, app, common.seed, files.resume);
    common.seed = settings.seed;
  }
  tapegrad::set_threads(options.threads);
  const Corpus corpus = examples::reading(files.saved(), [&] { return corpus_for(options, saved); });
  const Tokens start = start_of(options, corpus.vocabulary);
  if (files.load.empty()) files.prepare(common.out, options.text, kWritten, ranks);
  Training training(settings, corpus, ranks);
  if (saved) training.load(*saved, files.saved());
  if (!files.load.empty() && !ranks.first()) return;
  const auto written = [&] {
    return options.prompt + sample(training, start, options.length, options.sampling, common.seed);
  };
  if (!files.load.empty()) return show(written());

  const double unigram = unigram_loss(corpus);
  show(text("%zu characters, %zu of them different; the last %zu are for validation", corpus.size(),
            corpus.vocabulary.size(), corpus.validation.size()));
  show(text("loss of who knows how frequent each character is: %.3f, of who knows nothing: %.3f", unigram,
            std::log(static_cast<double>(corpus.vocabulary.size()))));
  show(text("parameters: %zu", training.net.parameter_count()));
  if (saved) show(text("going on after step %zu of ", training.step()) + files.resume);
  if (ranks.first()) examples::remove_old(common.out, kWritten);
  const bool done = train(training, start, options, common);
  if (!ranks.first()) return;
  if (done) show_losses(training, unigram, common.out);
  const std::string kept = options.sampling.top_k > 0 ? text("the %zu likeliest", options.sampling.top_k) : "all";
  show(text("\nwritten at temperature %g, of %s characters:\n", options.sampling.temperature, kept.c_str()));
  show(written());
  if (!done)
    return show("\n" + examples::stopped(training, files, options.text == kShipped ? "" : " --text " + options.text));
  show("\nsaved: " + files.save);
  // What a model of this size reaches in the shipped text; in any other, it must have learnt more than frequencies.
  const double part = options.text != kShipped ? 1 : settings.limit > 0 ? 0.85 : 0.6;
  const double bound = part * unigram, reached = training.measured.back();
  show(text("validation loss %.3f, needed: below %.3f (%g times that of the frequencies)", reached, bound, part));
  expect(reached < bound, text("the validation loss is below %.3f", bound));
}

}  // namespace

int main(int argc, char** argv) {
  tapegrad::Ranks ranks;
  Options options;
  return examples::run_on(
      ranks, argc, argv, "language_model", "A Transformer learns what character comes next in a text, and writes.",
      [&](CLI::App& app) {
        options.files.add_options(app);
        add_file(app, "--text", options.text, "to learn from, in UTF-8 [Pride and Prejudice]");
        examples::add_settings(app, options.settings);
        app.add_option("--prompt", options.prompt, "what the text that it writes begins with")->type_name("TEXT");
        add_number(app, "--threads", options.threads, 1, 256, "to compute with: pays from a width of 256 or so [1]");
        add_number(app, "--length", options.length, 0, 1'000'000, "characters that it writes [500]");
        add_number(app, "--temperature", options.sampling.temperature, 0, 100,
                   "of sampling; 0 takes the likeliest character [0.8]");
        add_number(app, "--top-k", options.sampling.top_k, 0, 1'000'000,
                   "sample from so many of the likeliest; 0: from all [20]");
      },
      [&](const examples::Common& common) { job(common, options, ranks); });
}
