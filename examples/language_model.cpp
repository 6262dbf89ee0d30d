// A language model of characters: a Transformer with a decoder only learns what character comes next in a text, and
// then writes text of its own. It sees single characters and nothing else: that there are words, and which, is what it
// has to find out. The first nine tenths of the text are learnt from, and the rest says how much was learnt: the loss
// there is the mean of -log p(next character), in nats.
//
// A training can be stopped at any time (Ctrl-C) and gone on with (--resume), with the same numbers bit for bit.
#include "autograd/threads.hpp"
#include "examples/language_model/sampling.hpp"
#include "examples/language_model/training.hpp"
#include "examples/support/csv.hpp"
#include "examples/support/program.hpp"
#include "examples/support/show.hpp"

using namespace language_model;
using examples::draw, examples::expect, examples::show, examples::text;

namespace {

const std::string kShipped = EXAMPLE_DATA "/pride_and_prejudice.txt";
constexpr std::size_t kMeasurements = 20;  // of the validation loss in a training
constexpr std::size_t kPieces = 128;       // of the validation part that these look at; the last one looks at all

struct Options {
  std::string text = kShipped;
  std::string save;    // empty: the file that is resumed, or language_model.safetensors in the output folder
  std::string resume;  // empty: a new training
  std::size_t save_every = 0;
  std::size_t stop_at = 0;
  std::array<std::optional<std::uint64_t>, kCounts.size()> counts;
  std::array<std::optional<double>, kNumbers.size()> numbers;
  std::string prompt;
  std::size_t length = 500;
  Sampling sampling{0.8, 20};
};

// ---- beginning ------------------------------------------------------------------------------------------------------

/// Defaults, and what the user chose.
Settings choose_settings(const Options& options, bool quick) {
  Settings settings;
  if (quick) settings = {2, 2, 64, 32, 16, 400, 50'000, 0.005, 0};
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    if (options.counts[i]) settings.*kCounts[i].member = *options.counts[i];
  }
  for (std::size_t i = 0; i < kNumbers.size(); ++i) {
    if (options.numbers[i]) settings.*kNumbers[i].member = *options.numbers[i];
  }
  if (settings.width % settings.heads != 0) {
    throw BadInput(
        text("--heads must divide --width; got %zu and %zu", std::size_t(settings.heads), std::size_t(settings.width)));
  }
  return settings;
}

/// A setting can be repeated with --resume, but not changed.
template <class Number>
void require_same(const Choice<Number>& choice, const std::optional<Number>& chosen, const Settings& settings) {
  if (!chosen || *chosen == settings.*choice.member) return;
  throw BadInput(text("its %s is %g, not %g", choice.name, double(settings.*choice.member), double(*chosen)));
}

/// The training that a checkpoint holds. Throws BadInput when it is damaged, or not of these options and this text.
std::unique_ptr<Training> resume(const Options& options, std::uint64_t seed, Corpus& corpus) {
  try {
    State state = nn::load_checkpoint(options.resume);
    const Settings settings = settings_of(state);
    for (std::size_t i = 0; i < kCounts.size(); ++i) require_same(kCounts[i], options.counts[i], settings);
    for (std::size_t i = 0; i < kNumbers.size(); ++i) require_same(kNumbers[i], options.numbers[i], settings);
    corpus = read_corpus(options.text, settings.limit, settings.context);
    if (corpus.vocabulary.text() != state.texts["vocabulary"] || fingerprint(corpus) != state.count("text")) {
      throw BadInput("it was trained on another text than " + options.text);
    }
    auto training = std::make_unique<Training>(settings, corpus, seed);
    training->load(std::move(state));
    return training;
  } catch (const tapegrad::Error& error) {
    throw BadInput("cannot resume " + options.resume + ": " + error.what());
  } catch (const BadInput& error) {
    throw BadInput("cannot resume " + options.resume + ": " + error.what());
  }
}

/// What is written first: the prompt, or else the beginning of a line.
Tokens start_of(const Options& options, const Vocabulary& vocabulary) {
  if (!options.prompt.empty()) return vocabulary.tokens(characters_of(options.prompt, "--prompt"), "--prompt");
  return vocabulary.text().find('\n') == std::string::npos ? Tokens{0} : vocabulary.tokens(U"\n", "a line");
}

// ---- training -------------------------------------------------------------------------------------------------------

/// One row for each step; the validation loss is empty where it was not measured.
void write_log(const Training& training, const std::string& out) {
  std::string table = "step,learning_rate,loss,validation_loss\n";
  for (std::size_t i = 0; i < training.step(); ++i) {
    const double measured = training.validation[i];
    table += std::to_string(i + 1) + ',' + examples::csv_number(training.rate(i)) + ',' +
             examples::csv_number(training.losses[i]) + ',' +
             (std::isnan(measured) ? "" : examples::csv_number(measured)) + '\n';
  }
  examples::write_file(out + "/language_model.csv", table);
}

/// The last line that fits, of what the model writes now.
std::string one_line(Training& training, const Tokens& start, const Options& options, std::uint64_t seed) {
  tapegrad::Rng rng(seed);
  std::string line = training.corpus.vocabulary.text(write(training.net, start, 44, options.sampling, rng));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t' || c == '\f'; }, ' ');
  return line;
}

/// Trains until all steps are done or the user wants no more; saves the checkpoint and the log at every measurement or
/// as often as asked for, and at the end.
void train(Training& training, const Tokens& start, const Options& options, const examples::Common& common) {
  const Settings& settings = training.settings;
  const std::size_t interval = std::max<std::size_t>(1, settings.steps / kMeasurements);
  const examples::Interrupt interrupt;
  examples::Progress progress("step", settings.steps, common.quiet, training.step());
  const auto enough = [&] { return training.done() || (options.stop_at > 0 && training.step() >= options.stop_at); };
  if (!enough()) progress.print("   step   loss   validation   it writes");
  for (bool stops = enough(); !stops;) {
    training.advance();
    const std::size_t step = training.step();
    const bool measures = training.done() || step % interval == 0;
    if (measures) {
      training.validation.back() = training.validation_loss(training.done() ? SIZE_MAX : kPieces);
      progress.print(text("%7zu  %5.3f  %11.3f   ", step, training.losses.back(), training.validation.back()) +
                     one_line(training, start, options, common.seed));
    }
    stops = enough() || interrupt.came();
    if (stops || (options.save_every > 0 ? step % options.save_every == 0 : measures)) {
      training.save(options.save);
      write_log(training, common.out);
    }
    progress.update(step, {training.losses.back(), training.rate(step - 1), settings.batch * settings.context});
  }
}

// ---- what it shows --------------------------------------------------------------------------------------------------

void show_losses(const Training& training, double unigram, const std::string& out) {
  Numbers at, measured, learnt;  // training losses as means since the last measurement
  for (std::size_t i = 0, first = 0; i < training.step(); ++i) {
    if (std::isnan(training.validation[i])) continue;
    at.push_back(static_cast<double>(i + 1));
    measured.push_back(training.validation[i]);
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

void show_sample(Training& training, const Tokens& start, const Options& options, std::uint64_t seed) {
  tapegrad::Rng rng(seed);
  const Tokens written = write(training.net, start, options.length, options.sampling, rng);
  const std::string kept = options.sampling.top_k > 0 ? text("the %zu likeliest", options.sampling.top_k) : "all";
  show(text("\nwritten at temperature %g, of %s characters:\n", options.sampling.temperature, kept.c_str()));
  show(options.prompt + training.corpus.vocabulary.text(written));
}

void job(const examples::Common& common, Options options) {
  examples::prepare_output_folder(common.out);
  if (options.save.empty()) {
    options.save = options.resume.empty() ? common.out + "/language_model.safetensors" : options.resume;
  }
  const std::filesystem::path save(options.save);
  if (!save.has_filename() || std::filesystem::is_directory(save)) {
    throw BadInput("--save needs a file; got the folder " + options.save);
  }
  examples::prepare_output_folder(save.has_parent_path() ? save.parent_path().string() : ".");
  if (common.quick) tapegrad::set_threads(1);  // products as small as these take longer on several
  Corpus corpus{Vocabulary({}), {}, {}};
  std::unique_ptr<Training> training;
  if (options.resume.empty()) {
    const Settings settings = choose_settings(options, common.quick);
    corpus = read_corpus(options.text, settings.limit, settings.context);
    training = std::make_unique<Training>(settings, corpus, common.seed);
  } else {
    training = resume(options, common.seed, corpus);
  }
  const Tokens start = start_of(options, corpus.vocabulary);
  const double unigram = unigram_loss(corpus);
  show(text("%zu characters, %zu of them different; the last %zu are for validation", corpus.size(),
            corpus.vocabulary.size(), corpus.validation.size()));
  show(text("loss of who knows how frequent each character is: %.3f, of who knows nothing: %.3f", unigram,
            std::log(static_cast<double>(corpus.vocabulary.size()))));
  show(text("numbers to learn: %zu", training->net.parameter_count()));
  if (training->step() > 0) show(text("going on after step %zu of %s", training->step(), options.resume.c_str()));

  train(*training, start, options, common);
  if (training->done()) {
    write_log(*training, common.out);
    show_losses(*training, unigram, common.out);
  }
  show_sample(*training, start, options, common.seed);
  if (!training->done()) {
    show(text("\nstopped after step %zu; to go on: --resume %s", training->step(), options.save.c_str()));
    return;
  }
  show("\nsaved: " + options.save);
  // What a model of this size reaches in the shipped text; in any other, it must have learnt more than frequencies.
  const double part = options.text != kShipped ? 1 : training->settings.limit > 0 ? 0.85 : 0.6;
  const double bound = part * unigram;
  show(text("validation loss %.3f, needed: below %.3f (%g times that of the frequencies)", training->validation.back(),
            bound, part));
  expect(training->validation.back() < bound, text("the validation loss is below %.3f", bound));
}

/// A number of that range, and not NaN.
CLI::Validator within(double low, double high) {
  return CLI::Validator(
      [low, high](const std::string& given) -> std::string {
        double number = 0;
        const bool is_number = CLI::detail::lexical_cast(given, number);
        if (is_number && number >= low && number <= high) return "";
        return text("a number from %g to %g is needed; got '", low, high) + given + "'";
      },
      text("%g to %g", low, high));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return examples::run(
      argc, argv, "language_model", "A Transformer learns what character comes next in a text, and writes.",
      [&](CLI::App& app) {
        app.add_option("--text", options.text, "file to learn from, in UTF-8 [Pride and Prejudice]")->type_name("FILE");
        app.add_option("--save", options.save, "checkpoint [the resumed one, or DIR/language_model.safetensors]")
            ->type_name("FILE");
        app.add_option("--resume", options.resume, "checkpoint to go on with, of the same text")->type_name("FILE");
        app.add_option("--save-every", options.save_every, "steps between saves [20 saves in all]")
            ->check(CLI::Range(1, 10'000'000));
        app.add_option("--stop-at", options.stop_at, "step to stop after, as by Ctrl-C")
            ->check(CLI::Range(1, 10'000'000));
        const Settings full;
        for (std::size_t i = 0; i < kCounts.size(); ++i) {
          const auto& [name, member, low, high, about] = kCounts[i];
          app.add_option(std::string("--") + name, options.counts[i], about + text(" [%zu]", std::size_t(full.*member)))
              ->check(within(double(low), double(high)))
              ->type_name("COUNT");
        }
        for (std::size_t i = 0; i < kNumbers.size(); ++i) {
          const auto& [name, member, low, high, about] = kNumbers[i];
          app.add_option(std::string("--") + name, options.numbers[i], about + text(" [%g]", full.*member))
              ->check(within(low, high))
              ->type_name("NUMBER");
        }
        app.add_option("--prompt", options.prompt, "what the text that it writes begins with")->type_name("TEXT");
        app.add_option("--length", options.length, "characters that it writes")
            ->check(CLI::Range(0, 1'000'000))
            ->capture_default_str();
        app.add_option("--temperature", options.sampling.temperature, "of sampling; 0 takes the likeliest character")
            ->check(within(0, 100))
            ->capture_default_str();
        app.add_option("--top-k", options.sampling.top_k, "sample from so many of the likeliest; 0: from all")
            ->check(CLI::Range(0, 1'000'000))
            ->capture_default_str();
      },
      [&](const examples::Common& common) { job(common, options); });
}
