// A Transformer translates (Vaswani et al., 2017): dates written in twenty ways into ISO 8601, character by character,
// or, word by word, a file of sentences and their translations. The encoder reads the source; the decoder writes the
// translation, and looks at what it has written so far and at the source.
#include "autograd/threads.hpp"
#include "examples/support/ranks.hpp"
#include "examples/translate/dates.hpp"
#include "examples/translate/pairs.hpp"
#include "examples/translate/report.hpp"
#include "examples/translate/training.hpp"

using namespace translate;
using examples::add_file, examples::add_number;

namespace {

const std::vector<std::string> kWritten = {"translate_log",          "translate_training", "translate_encoder_self",
                                           "translate_decoder_self", "translate_cross",    "translate_attention",
                                           "translate_test"};

struct Options {
  std::string pairs;
  examples::Files files;
  std::vector<std::string> texts;  // to translate
  std::size_t beam = 1;
  int threads = 1;  // a net as small as the default one takes longer on several
  Settings settings;
};

// ---- what is learned ------------------------------------------------------------------------------------------------

Vocabulary vocabulary_of(const State& state, const std::string& name) {
  Tokens list;
  const std::string& text = state.text(name);
  examples::require_text(text, name + " of the checkpoint");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) list.push_back(line);
  return Vocabulary(list);
}

/// The corpus of the options, which must be the one that the checkpoint, if any, was trained on. To translate by a
/// saved model, its vocabularies are all that is needed.
Corpus corpus_for(const Options& options, const std::optional<State>& saved) {
  const std::string& path = options.files.saved();
  const Settings& s = options.settings;
  Corpus found;
  bool dates = options.pairs.empty();
  if (saved) {
    found.source = vocabulary_of(*saved, "source_words");
    found.target = vocabulary_of(*saved, "target_words");
    found.fingerprint = saved->text("fingerprint");
    examples::require_parameters(path, *saved, s.parameters(found.source.size(), found.target.size()));
    dates = found.fingerprint == "dates";
    found.by_words = !dates;
    if (!options.files.load.empty() && !options.texts.empty()) return found;
  }
  if (dates != options.pairs.empty()) {
    throw BadInput(path + (dates ? ": was trained on dates, not on --pairs"
                                 : ": was trained on pairs; give their file by --pairs, or a text by --translate"));
  }
  Corpus corpus = dates ? date_corpus(s.seed) : pair_corpus(options.pairs, s);
  if (saved && (found.fingerprint != corpus.fingerprint || found.source.list() != corpus.source.list() ||
                found.target.list() != corpus.target.list())) {
    throw BadInput(path + ": was trained on other pairs than " + options.pairs + " has");
  }
  return corpus;
}

// ---- what is translated ---------------------------------------------------------------------------------------------

/// Refuses what is not one line of text; `line` is its number, of the standard input.
void check(const std::string& to_translate, const std::string& who, std::size_t line = 1) {
  examples::require_text(to_translate, who, line);
  const std::string where = who + ", line " + std::to_string(line);
  if (to_translate.find_first_of("\n\f") != std::string::npos) throw BadInput(where + ": must be one line");
  const std::size_t count = utf8::decoded(to_translate).size();
  if (count > 1000) throw BadInput(where + ": at most 1000 characters; got " + std::to_string(count));
}

/// A line with the translation. Says what the net has never seen.
void show_translation(Translator& net, const Corpus& corpus, const Options& options, const std::string& source) {
  const Tokens tokens = tokenised(source, corpus.by_words);
  const Ids ids = corpus.source.ids(tokens);
  std::string unknown;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == Vocabulary::unknown) unknown += (unknown.empty() ? "'" : ", '") + tokens[i] + "'";
  }
  if (!unknown.empty()) std::cerr << "translate: warning: not in the vocabulary: " + unknown + '\n';
  const Tokens found = translations(net, corpus, {tokens}, options.settings.longest + 1, options.beam)[0];
  show(joined(found, corpus.by_words ? " " : ""));
}

void show_translations(Translator& net, const Corpus& corpus, const Options& options) {
  for (const std::string& text : options.texts) {
    if (text != "-") {
      show_translation(net, corpus, options, text);
      continue;
    }
    std::string line;
    for (std::size_t number = 1; examples::next_line(line, 4000); ++number) {  // no more than check() lets through
      check(line, "--translate -", number);
      if (words(line).empty()) {
        show("");  // line by line beside the source
      } else {
        show_translation(net, corpus, options, line);
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------------

void job(const examples::Common& common, Options options, tapegrad::Ranks& ranks) {
  const CLI::App& app = *common.command_line;
  Settings& settings = options.settings;
  examples::Files& files = options.files;
  settings.seed = common.seed;
  files.check(app, ranks, options.texts.empty() ? std::vector<std::string>{} : std::vector<std::string>{"--pairs"});
  for (const std::string& text : options.texts) {
    check(text, "--translate");
    if (words(text).empty()) throw BadInput("--translate: nothing to translate in '" + text + "'");
  }
  set_threads(options.threads);
  std::optional<State> saved;
  if (files.saved().empty()) {
    settings.choose(app, !options.pairs.empty(), common.quick);
    examples::require_heads(settings, "--heads");
  } else {
    saved = examples::read_checkpoint(files, settings, app, ranks);
    examples::require_seed(settings, app, common.seed, files.saved());
  }
  const Corpus corpus = examples::reading(files.saved(), [&] { return corpus_for(options, saved); });
  if (settings.steps == 0) settings.steps = std::clamp<std::size_t>(30 * corpus.pairs / settings.batch, 400, 20000);
  const bool only_translates = !files.load.empty() && !options.texts.empty();
  if (!only_translates) files.prepare(common.out, options.pairs, kWritten, ranks);
  Training training(settings, corpus, ranks);
  if (saved) training.load(*saved, files.saved());
  if (!files.load.empty() && !ranks.first()) return;
  if (only_translates) return show_translations(training.net, corpus, options);

  if (corpus.by_words) {
    show(text("%zu pairs to train on, %zu to test; %zu longer than %zu words are left out", corpus.pairs,
              corpus.unseen ? corpus.test.size() : 0, corpus.left_out, settings.longest));
  }
  show(text("%zu steps of %zu pairs; %zu parameters; %zu and %zu %s", settings.steps, settings.batch,
            training.net.parameter_count(), corpus.source.list().size(), corpus.target.list().size(),
            corpus.by_words ? "words" : "characters"));
  if (files.load.empty()) {
    if (saved) show(text("going on after step %zu of ", training.step()) + files.resume);
    if (ranks.first()) examples::remove_old(common.out, kWritten);
    const bool done = examples::train(training, files, common, "translate_log.csv", "", [](auto&) {});
    if (!ranks.first()) return;
    if (!done)
      return show(examples::stopped(training, files, options.pairs.empty() ? "" : " --pairs " + options.pairs));
    show("  " + files.save);
  }
  if (training.step() > 0) show_training(training, common.out);
  const std::optional<double> exact = show_scores(training.net, corpus, settings.longest + 1, options.beam, common.out);
  if (!exact) return show("stopped before the test was translated");
  show_heads(training.net, corpus, settings.longest + 1, common.out);
  show_translations(training.net, corpus, options);
  examples::expect(*exact >= settings.needed, text("at least %g %% are exact", settings.needed));
}

}  // namespace

int main(int argc, char** argv) {
  tapegrad::Ranks ranks;
  Options options;
  return examples::run_on(
      ranks, argc, argv, "translate",
      "A Transformer translates: dates of any form into ISO 8601, or your own pairs of texts.",
      [&](CLI::App& app) {
        add_file(app, "--pairs", options.pairs, "texts to learn: source TAB target, further columns ignored");
        app.add_option("--translate", options.texts, "a text to translate; may be given again; -: each line of stdin")
            ->type_name("TEXT")
            ->allow_extra_args(false)
            ->check([](const std::string& given) {
              return given.starts_with("--") ? "a text is needed; got the option " + given : "";
            });
        add_number(app, "--beam", options.beam, 1, 100, "how many hypotheses are kept; 1: greedy [1]");
        add_number(app, "--threads", options.threads, 1, 256, "to compute with: pays from a width of 256 or so [1]");
        options.files.add_options(app);
        examples::add_settings(app, options.settings);
      },
      [&](const examples::Common& common) { job(common, options, ranks); });
}
