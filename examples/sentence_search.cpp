// Sentences by what they mean: a pretrained model, all-MiniLM-L6-v2, turns each into 384 numbers, and sentences that
// mean something similar get similar ones. `make minilm` fetches the model.
//
//   sentence_search --similarity 'A man plays a guitar.' 'Someone makes music.'
//   sentence_search --index book.txt --save book.safetensors
//   sentence_search --search book.safetensors --query 'Who is rich?'
//   sentence_search --train labelled.tsv --save my_model      # label TAB text
//   sentence_search --model my_model --classify < texts
#include <chrono>

#include "examples/sentence_search/classifier.hpp"
#include "examples/sentence_search/index.hpp"

using namespace sentence_search;
using examples::add_file, examples::add_number;

namespace {

/// What a model's folder may have that is read.
const std::vector<std::string> kModel = {"config.json",           "vocab.txt",
                                         "model.safetensors",     "sentence_bert_config.json",
                                         "tokenizer_config.json", "1_Pooling/config.json",
                                         "classifier.safetensors"};

struct Options {
  std::string model = "minilm";
  std::vector<std::string> similarity;
  std::string index, search, save;
  std::vector<std::string> queries;
  bool classify = false;
  std::size_t top = 5;
  std::size_t batch = 32;
  std::string train;
  Settings settings;
};

std::unique_ptr<SentenceEncoder> load_model(const std::string& folder) {
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) {
    if (const std::string previous = folder + ".previous"; std::filesystem::is_directory(previous, none)) {
      throw BadInput("no model in " + folder + ", but the one before it is in " + previous);
    }
    throw BadInput("no model in " + folder + ": `make minilm` fetches one, --model says where another is");
  }
  try {
    return std::make_unique<SentenceEncoder>(folder);
  } catch (const tapegrad::Error& error) {
    throw BadInput(error.what());
  }
}

/// Calls answer(question) with each --query, or else with each line of the standard input that is not blank.
void for_each_question(const Options& options, const auto& answer) {
  const auto one = [&](const std::string& question, const std::string& name, std::size_t line) {
    examples::require_text(question, name, line);
    answer(question);
    if (!std::cout.flush()) throw std::runtime_error("cannot write to the standard output");
  };
  for (const std::string& question : options.queries) one(question, "--query", 1);
  if (!options.queries.empty()) return;
  std::string line;
  for (std::size_t number = 1; examples::next_line(line, 1'000'000); ++number) {
    if (!is_blank(line)) one(line, "standard input", number);
  }
}

void similarity(SentenceEncoder& encoder, const std::vector<std::string>& two) {
  std::vector<SentenceEncoder::Tokens> tokens;
  for (const std::string& sentence : two) {
    const std::string name = text("--similarity, text %zu", tokens.size() + 1);
    tokens.push_back(examples::reading(name, [&] { return encoder.tokens(sentence); }));
  }
  const Array rows = encoder(tokens);
  const std::size_t width = rows.size() / 2;
  const Real score = std::inner_product(rows.data(), rows.data() + width, rows.data() + width, Real(0));
  show(text("%.4f", static_cast<double>(score)));
}

void job(const examples::Common& common, Options options) {
  const CLI::App& app = *common.command_line;
  const int actions = int(app.count("--similarity") > 0) + int(app.count("--index") > 0) +
                      int(app.count("--search") > 0) + int(app.count("--train") > 0) + int(options.classify);
  if (actions != 1) throw BadInput("one of --similarity, --index, --search, --train and --classify is needed");
  const bool saves = !options.index.empty() || !options.train.empty();
  if (!saves && app.count("--save") > 0) throw BadInput("--save is for --index and --train");
  if (saves) {
    examples::prepare_output_folder(common.out);
    if (options.save.empty()) {
      options.save = common.out + (options.train.empty() ? "/sentence_search.safetensors" : "/sentence_search");
    }
    std::vector<std::string> written = {options.save, options.save + ".previous"};
    if (options.train.empty()) {
      examples::prepare_save(options.save);
    } else {
      while (options.save.size() > 1 && options.save.ends_with('/')) options.save.pop_back();
      std::vector<std::string> own = kModel;
      own.push_back("sentence_search.csv");  // where --out is the same folder
      examples::prepare_save_folder(options.save, own);
      written.push_back(common.out + "/sentence_search.csv");
    }
    std::vector<std::string> kept = {options.index, options.train};
    for (const std::string& name : kModel) kept.push_back(options.model + "/" + name);
    examples::require_kept(kept, written);
  }
  const std::unique_ptr<SentenceEncoder> encoder = load_model(options.model);
  if (!options.similarity.empty()) return similarity(*encoder, options.similarity);
  if (!options.train.empty()) {
    return train(*encoder, options.train, options.save, options.batch, options.settings, common);
  }
  if (options.classify) {
    const Classifier classifier = load_classifier(options.model, encoder->bert().config().width);
    return for_each_question(options, [&](const std::string& line) { show(classify(classifier, *encoder, line)); });
  }
  Index index;
  if (options.index.empty()) {
    index = load_index(*encoder, options.search);
  } else {
    const auto start = std::chrono::steady_clock::now();
    index = make_index(*encoder, options.index, options.batch, common.quiet);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    examples::keep_previous(options.save);
    save_index(index, *encoder, options.save);
    const std::size_t count = index.numbers.size();
    show(text("%zu lines in %.2f s, %.0f a second", count, seconds, static_cast<double>(count) / seconds));
    show("saved: " + options.save);
    if (options.queries.empty()) return;
  }
  for_each_question(options, [&](const std::string& question) {
    const std::string lines = answers(index, *encoder, question, options.top);
    std::cout << "> " << question << '\n' << lines;
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return examples::run(
      argc, argv, "sentence_search", "Finds the lines of a text that mean what is asked for, and learns labels.",
      [&](CLI::App& app) {
        app.add_option("--model", options.model, "folder of the model [minilm]")->type_name("DIR");
        app.add_option("--similarity", options.similarity, "how close two texts are: at most 1")
            ->expected(2)
            ->allow_extra_args(false)
            ->type_name("TEXT TEXT");
        add_file(app, "--index", options.index, "text whose lines are to be found, in UTF-8");
        add_file(app, "--search", options.search, "index that was saved");
        app.add_option("--query", options.queries, "what to look for [the lines of the standard input]")
            ->expected(1)
            ->take_all()
            ->allow_extra_args(false)
            ->type_name("TEXT");
        add_number(app, "--top", options.top, 1, 1'000'000, "lines for each query [5]");
        add_file(app, "--train", options.train, "lines to learn from: label, tab, text");
        app.add_flag("--classify", options.classify, "labels of texts, by a model that --train saved");
        add_file(app, "--save", options.save,
                 "the index [DIR/sentence_search.safetensors], or the trained model's folder [DIR/sentence_search]");
        add_number(app, "--batch", options.batch, 1, 100'000, "texts at a time [32]");
        add_options(app, options.settings);
      },
      [&](const examples::Common& common) { job(common, options); });
}
