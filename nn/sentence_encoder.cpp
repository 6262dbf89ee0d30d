#include "nn/sentence_encoder.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "nn/file.hpp"
#include "nn/safetensors.hpp"
#include "nn/serialize.hpp"

namespace TAPEGRAD::nn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kLargestJson = 1'000'000;                         // bytes
constexpr int kDeepestJson = 20;                                        // braces and brackets within each other
constexpr std::uint64_t kLargestSize = 1'000'000'000;                   // so that products of two stay below 2^64
const std::vector<std::string> kSkipped = {"embeddings.position_ids"};  // in older files: 0, 1, 2 ...

[[noreturn]] void refuse_file(const std::string& path, const std::string& rule, const std::string& got = "") {
  refuse("SentenceEncoder", path + ": " + rule, got);
}

std::string read_text(const std::string& path) {
  std::ifstream file = open_file(path);
  if (!file.is_open()) refuse_file(path, "the model's folder must have this file");
  std::string text(kLargestJson, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof()) refuse_file(path, "it must be shorter than 1 MB");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Json parse(const std::string& text, const std::string& path) {
  bool deep = false;  // copies and texts of such JSON are made by recursion
  const auto watch = [&](int depth, Json::parse_event_t, const Json&) { return !(deep |= depth > kDeepestJson); };
  Json json = Json::parse(text, watch, false);
  if (deep) refuse_file(path, "its JSON must nest at most 20 deep");
  if (!json.is_object()) refuse_file(path, "it must be an object of JSON");
  return json;
}

std::size_t size_of(const Json& json, const char* name, const std::string& path) {
  const auto found = json.find(name);
  if (found == json.end()) refuse_file(path, std::string(name) + " is missing");
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() == 0 || found->get<std::uint64_t>() > kLargestSize) {
    refuse_file(path, std::string(name) + " must be a whole number from 1 to 1e9", found->dump().substr(0, 100));
  }
  return found->get<std::size_t>();
}

/// What the file must say of that name, or may be silent about when that means the same.
void require_said(const Json& json, const std::string& name, const Json& expected, const std::string& path,
                  bool by_default = true) {
  const Json said = json.value(name, by_default ? expected : Json());
  if (said != expected) refuse_file(path, name + " must be " + expected.dump(), said.dump().substr(0, 100));
}

BertConfig read_config(const std::string& folder, const std::string& text, std::size_t tokens) {
  const std::string path = folder + "/config.json", weights = folder + "/model.safetensors";
  const Json json = parse(text, path);
  require_said(json, "model_type", "bert", path, false);
  require_said(json, "hidden_act", "gelu", path, false);
  require_said(json, "architectures", Json::array({"BertModel"}), path);
  require_said(json, "position_embedding_type", "absolute", path);
  require_said(json, "is_decoder", false, path);
  BertConfig config;
  config.vocabulary = size_of(json, "vocab_size", path);
  config.positions = size_of(json, "max_position_embeddings", path);
  config.types = size_of(json, "type_vocab_size", path);
  config.width = size_of(json, "hidden_size", path);
  config.layers = size_of(json, "num_hidden_layers", path);
  config.heads = size_of(json, "num_attention_heads", path);
  config.hidden = size_of(json, "intermediate_size", path);
  const Json eps = json.value("layer_norm_eps", Json(1e-12));
  if (!eps.is_number() || !(eps.get<double>() >= 0 && eps.get<double>() < 1)) {
    refuse_file(path, "layer_norm_eps must be from 0 to 1", eps.dump().substr(0, 100));
  }
  config.eps = eps.get<double>();
  const Json padding = json.value("pad_token_id", Json(0));
  if (!padding.is_null() && !(padding.is_number_unsigned() && padding.get<std::uint64_t>() < config.vocabulary)) {
    refuse_file(path, "pad_token_id must be a token", padding.dump().substr(0, 100));
  }
  config.padding.reset();
  if (!padding.is_null()) config.padding = padding.get<std::int64_t>();
  if (config.width % config.heads != 0) {
    refuse_file(path, "num_attention_heads must divide hidden_size",
                std::to_string(config.heads) + " and " + std::to_string(config.width));
  }
  if (config.vocabulary != tokens) {
    refuse_file(path, "vocab_size must be the number of tokens in vocab.txt",
                std::to_string(config.vocabulary) + " and " + std::to_string(tokens));
  }
  // Before any of it is made: a small file must not take much memory.
  std::error_code error;
  const auto bytes = fs::file_size(weights, error);
  if (error) refuse_file(weights, "the model's folder must have this file");
  const auto real = [](std::size_t n) { return static_cast<double>(n); };
  const double least = 4 * real(config.width) *
                       (real(config.vocabulary) + real(config.positions) + real(config.types) +
                        real(config.layers) * (4 * real(config.width) + 2 * real(config.hidden)));
  if (least > static_cast<double>(bytes)) {
    refuse_file(weights, "it must be as large as config.json says",
                std::to_string(bytes) + " bytes for " + std::to_string(static_cast<std::uint64_t>(least / 4)) +
                    " weights at least");
  }
  return config;
}

/// Whether there is anything of that name, be it a link that leads nowhere.
bool there(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

std::size_t read_longest(const std::string& folder, std::size_t positions) {
  const std::string path = folder + "/sentence_bert_config.json";
  if (!there(path)) return positions;
  const Json json = parse(read_text(path), path);
  const std::size_t longest = size_of(json, "max_seq_length", path);
  if (longest < 2 || longest > positions) {
    refuse_file(path, "max_seq_length must be from 2 to max_position_embeddings",
                std::to_string(longest) + " and " + std::to_string(positions));
  }
  return longest;
}

void require_kind(const std::string& folder) {
  const std::string tokenizer = folder + "/tokenizer_config.json", pooling = folder + "/1_Pooling/config.json";
  if (there(tokenizer)) require_said(parse(read_text(tokenizer), tokenizer), "do_lower_case", true, tokenizer);
  if (there(pooling)) {
    require_said(parse(read_text(pooling), pooling), "pooling_mode_mean_tokens", true, pooling);
  }
}

}  // namespace

SentenceEncoder::SentenceEncoder(const std::string& folder)
    : config_(read_text(folder + "/config.json")),
      words_(WordPiece::from_file(folder + "/vocab.txt")),
      longest_(0),
      bert_(read_config(folder, config_, words_.size()), rng_) {
  require_kind(folder);
  longest_ = read_longest(folder, bert_.config().positions);
  load_checkpoint(folder + "/model.safetensors", bert_, kSkipped);
  for (const auto& [name, parameter] : bert_.named_parameters()) {
    const Array& array = parameter.value();
    if (std::all_of(array.begin(), array.end(), [](Real x) { return std::isfinite(x); })) continue;
    refuse_file(folder + "/model.safetensors", "all numbers must be finite, and not so in " + in_quotes(name));
  }
  bert_.eval();
}

Tensor SentenceEncoder::embed(const std::vector<Tokens>& sentences) {
  std::size_t longest = 1;
  for (const Tokens& tokens : sentences) longest = std::max(longest, tokens.size());
  Index ids(Shape{sentences.size(), longest}), lengths(Shape{sentences.size()});
  std::fill_n(ids.data(), ids.size(), words_.pad());
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    std::copy(sentences[i].begin(), sentences[i].end(), ids.data() + i * longest);
    lengths.data()[i] = static_cast<std::int64_t>(sentences[i].size());
  }
  return mean_embedding(bert_(ids, lengths), lengths);
}

Array SentenceEncoder::operator()(const std::vector<std::string>& sentences, std::size_t batch) {
  std::vector<Tokens> texts;
  for (const std::string& sentence : sentences) texts.push_back(tokens(sentence));
  return (*this)(texts, batch);
}

Array SentenceEncoder::operator()(const std::vector<Tokens>& sentences, std::size_t batch,
                                  const std::function<void(std::size_t)>& done) {
  require(batch > 0, "SentenceEncoder", "the batch must be positive", batch);
  std::vector<std::size_t> order(sentences.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sentences[a].size() < sentences[b].size(); });
  const std::size_t width = bert_.config().width;
  Array embeddings = empty_array({sentences.size(), width});
  for (std::size_t at = 0; at < order.size(); at += batch) {
    const std::size_t count = std::min(batch, order.size() - at);
    std::vector<Tokens> some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(sentences[order[at + i]]);
    const Tensor rows = embed(some);
    for (std::size_t i = 0; i < count; ++i) {
      const Real* const row = rows.value().data() + i * width;
      const Real squares = std::inner_product(row, row + width, row, Real(0));
      if (!(std::abs(squares - 1) < Real(1e-3))) {
        throw std::runtime_error("an embedding must have norm 1, and not " + to_text(std::sqrt(squares)) +
                                 ": the model's weights are too large, or 0");
      }
      std::copy_n(row, width, embeddings.data() + order[at + i] * width);
    }
    if (done) done(at + count);
  }
  return embeddings;
}

void SentenceEncoder::save(const std::string& folder) const {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw std::runtime_error("cannot create " + folder + ": " + error.message());
  std::string vocabulary;
  for (const std::string& token : words_.vocabulary()) vocabulary.append(token).append("\n");
  State state = state_of(bert_);
  state.texts["format"] = "pt";                // without it transformers does not read the file
  fs::remove(folder + "/config.json", error);  // until the new one is there, the last, it is no model
  save_checkpoint(folder + "/model.safetensors", state);
  write_file(folder + "/vocab.txt", vocabulary);
  write_file(folder + "/sentence_bert_config.json", "{\"max_seq_length\": " + std::to_string(longest_) + "}\n");
  write_file(folder + "/config.json", config_);
}

}  // namespace TAPEGRAD::nn
