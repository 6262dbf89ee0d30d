// A Transformer translates (Vaswani et al., 2017): dates written in twenty ways into ISO 8601, character by character,
// or, word by word, a file of sentences and their translations. The encoder reads the source; the decoder writes the
// translation, and looks at what it has written so far and at the source.
#include <filesystem>

#include "autograd/threads.hpp"
#include "examples/translate/dates.hpp"
#include "examples/translate/pairs.hpp"
#include "examples/translate/report.hpp"
#include "examples/translate/train.hpp"

using namespace translate;

namespace {

struct Options {
  std::string pairs, save, load, resume;
  std::vector<std::string> texts;  // to translate
  std::size_t beam = 1;
  int threads = 1;  // a net as small as the default one takes longer on several
  std::size_t save_every = 500;
  std::size_t stop_at = 0;  // 0: when done
  Settings settings;
};

// ---- a saved model --------------------------------------------------------------------------------------------------

Vocabulary vocabulary_of(const State& state, const std::string& name) {
  const auto found = state.texts.find(name);
  require(found != state.texts.end() && !found->second.empty(), "checkpoint", "the vocabularies must be there");
  Tokens list;
  std::istringstream lines(found->second);
  for (std::string line; std::getline(lines, line);) list.push_back(line);
  return Vocabulary(list);
}

bool is_of_dates(const State& state) { return state.texts.at("fingerprint") == "dates"; }

/// The file's state, with the settings taken from it. BadInput when it is no checkpoint of this program.
State read_checkpoint(const std::string& path, Settings& settings, const CLI::App& app) {
  try {
    State state = nn::load_checkpoint(path);
    require(state.texts.contains("fingerprint"), "checkpoint", "the file must be one that translate has saved");
    settings.load(state.take("settings."), app, path);
    // Before a net of that size is made: a small file must not take much memory.
    const Array* words = state.find("source_embedding.weight");
    const std::string last = "transformer.encoder.layers." + std::to_string(settings.layers - 1) + ".norm1.weight";
    require(words != nullptr && words->dimension() == 2 && words->shape()[1] == settings.width && state.find(last),
            "checkpoint", "the arrays must be of the width and the layers that the settings say");
    return state;
  } catch (const BadInput&) {
    throw;
  } catch (const std::exception& error) {
    throw BadInput(path + ": " + error.what());
  }
}

/// Fills the net and its training from the file.
void load_training(Training& training, State state, const std::string& path) {
  for (const char* text : {"fingerprint", "source_words", "target_words"}) state.texts.erase(text);
  try {
    training.load(std::move(state));
  } catch (const Error& error) {
    throw BadInput(path + ": " + error.what());
  }
}

// ---- what is asked for ----------------------------------------------------------------------------------------------

void check(const std::string& to_translate, const std::string& where) {
  if (!is_utf8(to_translate)) throw BadInput(where + ": is not UTF-8");
  const std::size_t tokens = characters(to_translate).size();
  if (tokens > 1000) throw BadInput(where + ": at most 1000 characters; got " + std::to_string(tokens));
}

/// What can be refused before any work is.
void check(const Options& options) {
  if (!options.load.empty() && !options.resume.empty()) throw BadInput("--load and --resume exclude each other");
  if (!options.load.empty() && !options.save.empty()) throw BadInput("--load trains nothing that --save could save");
  for (const std::string& text : options.texts) {
    if (text == "-") continue;
    check(text, "--translate");
    if (words(text).empty()) throw BadInput("--translate: nothing to translate in '" + text + "'");
  }
}

/// The corpus of the options, which must be the one that the checkpoint, if any, was trained on.
Corpus corpus_for(const Options& options, const std::optional<State>& saved) {
  const std::string& path = options.load.empty() ? options.resume : options.load;
  if (saved && is_of_dates(*saved) != options.pairs.empty()) {
    throw BadInput(path + (is_of_dates(*saved) ? ": was trained on dates, not on --pairs"
                                               : ": was trained on pairs; give their file by --pairs"));
  }
  const Settings& s = options.settings;
  Corpus corpus = options.pairs.empty()
                      ? date_corpus(s.seed)
                      : pair_corpus(options.pairs, {s.first, s.longest, s.min_frequency, s.held_out}, s.seed);
  if (saved && (saved->texts.at("fingerprint") != corpus.fingerprint ||
                vocabulary_of(*saved, "source_words").list() != corpus.source.list() ||
                vocabulary_of(*saved, "target_words").list() != corpus.target.list())) {
    throw BadInput(path + ": was trained on other pairs than " + options.pairs + " has");
  }
  return corpus;
}

/// A line with the translation. Says what the net has never seen.
void show_translation(Translator& net, const Corpus& corpus, const Options& options, const std::string& source) {
  const Tokens tokens = tokenised(source, corpus.by_words);
  const Ids ids = corpus.source.ids(tokens);
  std::string unknown;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == Vocabulary::unknown) unknown += (unknown.empty() ? "'" : ", '") + tokens[i] + "'";
  }
  if (!unknown.empty()) std::cerr << "translate: warning: never seen in training: " + unknown + '\n';
  const Tokens found = translations(net, corpus, {tokens}, options.settings.longest + 1, options.beam)[0];
  std::cout << joined(found, corpus.by_words ? " " : "") << std::endl;  // somebody may wait for it
}

void show_translations(Translator& net, const Corpus& corpus, const Options& options) {
  for (const std::string& text : options.texts) {
    if (text != "-") {
      show_translation(net, corpus, options, text);
      continue;
    }
    std::string line;
    for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
      if (line.ends_with('\r')) line.pop_back();
      check(line, "--translate -, line " + std::to_string(number));
      if (words(line).empty()) {
        show("");  // line by line beside the source
      } else {
        show_translation(net, corpus, options, line);
      }
    }
  }
}

/// Trains to the end, or until stopped; returns whether it was the end.
bool train(Training& training, const Options& options, const examples::Common& common) {
  const examples::Interrupt interrupt;
  examples::Progress progress("step", options.settings.steps, common.quiet, training.step());
  bool stopped = false;
  while (!training.finished() && !stopped) {
    const std::size_t tokens = training.advance();
    const std::size_t step = training.step();
    progress.update(step, {training.losses().back(), training.rate(step - 1), tokens});
    stopped = interrupt.came() || step == options.stop_at;
    if (!stopped && !training.finished() && step % options.save_every != 0) continue;
    nn::save_checkpoint(options.save, training.state());
    training.write_log(common.out + "/translate_log.csv");
  }
  return training.finished();
}

void translate_only(const Options& options, const State& saved) {
  try {
    Corpus corpus;
    corpus.by_words = !is_of_dates(saved);
    corpus.source = vocabulary_of(saved, "source_words");
    corpus.target = vocabulary_of(saved, "target_words");
    Training training(options.settings, corpus);
    load_training(training, saved, options.load);
    show_translations(training.net, corpus, options);
  } catch (const Error& error) {
    throw BadInput(options.load + ": " + error.what());
  }
}

void job(const examples::Common& common, Options options, const CLI::App& app) {
  Settings& settings = options.settings;
  settings.seed = common.seed;
  check(options);
  set_threads(options.threads);
  std::optional<State> saved;
  const std::string& path = options.load.empty() ? options.resume : options.load;
  if (path.empty()) {
    settings.choose(app, !options.pairs.empty(), common.quick);
  } else {
    saved = read_checkpoint(path, settings, app);
  }
  if (!options.load.empty() && !options.texts.empty()) return translate_only(options, *saved);

  examples::prepare_output_folder(common.out);
  if (options.save.empty()) options.save = options.resume;
  if (options.save.empty()) options.save = common.out + "/translate.safetensors";
  const std::filesystem::path folder = std::filesystem::path(options.save).parent_path();
  if (!folder.empty()) examples::prepare_output_folder(folder);
  if (std::filesystem::is_directory(options.save)) throw BadInput(options.save + ": is a folder, not a file");

  const Corpus corpus = corpus_for(options, saved);
  if (settings.steps == 0) settings.steps = std::clamp<std::size_t>(30 * corpus.pairs / settings.batch, 400, 20000);
  settings.check("--");
  Training training(settings, corpus);
  if (saved) load_training(training, *saved, path);
  if (options.stop_at > 0 && options.stop_at <= training.step()) {
    throw BadInput(text("--stop-at %zu: %s is past that step, at %zu", options.stop_at, path.c_str(), training.step()));
  }
  if (corpus.by_words) {
    show(text("%zu pairs to train on, %zu to test; %zu longer than %zu words are left out", corpus.pairs,
              corpus.unseen ? corpus.test.size() : 0, corpus.left_out, settings.longest));
  }
  show(text("%zu steps of %zu pairs; %zu numbers to learn; %zu and %zu %s", settings.steps, settings.batch,
            training.net.parameter_count(), corpus.source.list().size(), corpus.target.list().size(),
            corpus.by_words ? "words" : "characters"));
  if (!options.resume.empty()) show(text("going on after step %zu of %s", training.step(), path.c_str()));
  if (options.load.empty() && !train(training, options, common)) {
    return show(text("stopped after step %zu of %zu; to go on: --resume %s", training.step(), settings.steps,
                     options.save.c_str()));
  }
  if (options.load.empty()) show("  " + options.save);
  if (training.step() > 0) show_training(training.losses(), common.out);
  const double exact = show_scores(training.net, corpus, settings.longest + 1, options.beam, common.out);
  show_heads(training.net, corpus, settings.longest + 1, common.out);
  show_translations(training.net, corpus, options);
  examples::expect(exact >= settings.needed, text("at least %g %% are exact", settings.needed));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App* command_line = nullptr;
  return examples::run(
      argc, argv, "translate", "A Transformer translates: dates of any form into ISO 8601, or your own pairs of texts.",
      [&](CLI::App& app) {
        command_line = &app;
        app.add_option("--pairs", options.pairs, "texts to learn: source TAB target, further columns ignored")
            ->type_name("FILE");
        app.add_option("--translate", options.texts, "a text to translate; may be given again; -: each line of stdin")
            ->type_name("TEXT")
            ->allow_extra_args(false)
            ->check([](const std::string& given) {
              return given.starts_with("--") ? "a text is needed; got the option " + given : "";
            });
        app.add_option("--beam", options.beam, "how many beginnings are searched; 1: greedy")
            ->check(CLI::Range(1, 100))
            ->capture_default_str();
        app.add_option("--threads", options.threads, "to compute with: pays from a width of 256 or so")
            ->check(CLI::Range(1, 256))
            ->capture_default_str();
        app.add_option("--save", options.save, "the model and its training [OUT/translate.safetensors]")
            ->type_name("FILE");
        app.add_option("--resume", options.resume, "goes on with a training that was saved")->type_name("FILE");
        app.add_option("--load", options.load, "uses a saved model without training it further")->type_name("FILE");
        app.add_option("--save-every", options.save_every, "steps between saves")
            ->check(CLI::Range(1, 10'000'000))
            ->capture_default_str();
        app.add_option("--stop-at", options.stop_at, "step to save after and to end, as by Ctrl-C")
            ->check(CLI::Range(1, 10'000'000));
        options.settings.add_options(app);
      },
      [&](const examples::Common& common) { job(common, options, *command_line); });
}
