#include "nn/sentence_encoder.hpp"

#include "nn/loss.hpp"
#include "nn/serialize.hpp"
#include "optim/adam.hpp"
#include "tests/nn/sentences.hpp"

using namespace tapegrad;
using nn::SentenceEncoder;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> texts() {
  std::vector<std::string> all;
  for (const auto& entry : sentences::read_json("sentences.json")) all.push_back(entry["text"].get<std::string>());
  return all;
}

/// The largest difference of any number; both are (N,E).
double distance(const Array& a, const Array& b) {
  REQUIRE(a.shape() == b.shape());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double(a.data()[i]) - double(b.data()[i]));
    if (!(difference <= largest)) largest = difference;  // NaN stays
  }
  return largest;
}

Array tiny_embeddings() {
  const auto rows = sentences::read_json("tiny_bert.json")["embeddings"];
  Array array = empty_array({rows.size(), rows[0].size()});
  std::size_t i = 0;
  for (const auto& row : rows) {
    for (const double x : row) array.data()[i++] = static_cast<Real>(x);
  }
  return array;
}

/// The largest relative difference from PyTorch's losses of tests/reference/bert.py's fine-tuning.
double replay(SentenceEncoder& encoder, const std::string& name, double rate, std::size_t spoken) {
  const std::size_t width = encoder.bert().config().width;
  Array start = empty_array({3, width});
  for (std::size_t i = 0; i < start.size(); ++i) start.data()[i] = Real(0.5 * std::cos(1 + 0.7 * double(i)));
  const Parameter weight{Tensor(std::move(start))}, bias{zeros({3})};
  std::vector<Parameter> parameters = encoder.bert().parameters();
  parameters.push_back(weight);
  parameters.push_back(bias);
  optim::AdamW optimizer(parameters, {.learning_rate = rate, .eps = 1e-6});
  const std::vector<std::string> all = texts();
  double worst = 0;
  std::size_t step = 0;
  const auto losses = sentences::read_json(name)["losses"];
  for (const double expected : losses) {
    std::vector<SentenceEncoder::Tokens> batch;
    std::vector<std::int64_t> labels;
    for (std::size_t i = 8 * step; i < 8 * step + 8; ++i) {
      batch.push_back(encoder.tokens(all[i % spoken]));
      labels.push_back(static_cast<std::int64_t>(i % spoken % 3));
    }
    optimizer.zero_grad();
    Tape tape;
    const Tensor loss = cross_entropy(linear(encoder.embed(batch), weight, bias), Index(Shape{8}, labels));
    tape.backward(loss);
    optimizer.step();
    const double difference = std::abs(double(loss.item()) / expected - 1);
    INFO("step " << step << ": " << loss.item() << " for " << expected);
    CHECK(difference < 1e-3);
    worst = std::max(worst, difference);
    ++step;
  }
  CHECK(step == 20);
  return worst;
}

std::size_t spoken() { return sentences::read_json("tiny_bert.json")["spoken"].get<std::size_t>(); }

/// A copy of the tiny model, to be spoilt; goes with the test.
struct Copy {
  Copy() {
    std::string name = (fs::temp_directory_path() / "tapegrad_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
    fs::copy(sentences::kTiny, path);
  }
  ~Copy() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path + "/" + name) << text; }
  std::string read(const std::string& name) const {
    std::ifstream file(path + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void refused(const std::string& message) const {
    check_refused([&] { SentenceEncoder encoder(path); }, message);
  }
  std::string path;
};

}  // namespace

TEST_CASE("SentenceEncoder's embeddings are PyTorch's", "[sentence_encoder]") {
  SentenceEncoder tiny(sentences::kTiny);
  CHECK(tiny.longest() == 40);
  const Array expected = tiny_embeddings();
  CHECK(expected.shape()[0] >= 200);
  const Array got = tiny(texts());
  CHECK(distance(got, expected) < (kDouble ? 1e-7 : 1e-5));
  CHECK(distance(tiny(texts(), 7), got) < (kDouble ? 1e-12 : 2e-6));
  CHECK(tiny(std::vector<std::string>{}).shape() == Shape{0, 32});
  check_refused([&] { tiny(texts(), 0); }, "the batch must be positive");
  check_refused([&] { tiny(std::vector<std::string>{"a", "b\xff"}); }, "must be UTF-8; got byte 1");
}

TEST_CASE("all-MiniLM-L6-v2's embeddings are PyTorch's", "[minilm]") {
  if (!sentences::has_minilm()) return;
  SentenceEncoder encoder(sentences::kMiniLM);
  CHECK(encoder.longest() == 256);
  const Array reference = *nn::load_checkpoint(sentences::kReference + "minilm.safetensors").find("embeddings");
  CHECK(distance(encoder(texts()), reference) < 1e-5);
}

TEST_CASE("Fine-tuning a SentenceEncoder replays PyTorch's", "[sentence_encoder]") {
  SentenceEncoder tiny(sentences::kTiny);
  CHECK(replay(tiny, "tiny_bert.json", 1e-4, spoken()) < (kDouble ? 1e-7 : 1e-4));
}

TEST_CASE("Fine-tuning all-MiniLM-L6-v2 replays PyTorch's", "[minilm]") {
  if (!sentences::has_minilm()) return;
  SentenceEncoder encoder(sentences::kMiniLM);
  CHECK(replay(encoder, "minilm.json", 2e-5, spoken()) < 1e-4);
}

TEST_CASE("A SentenceEncoder that is saved comes back the same", "[sentence_encoder]") {
  const Copy copy;
  SentenceEncoder tiny(sentences::kTiny);
  for (Parameter& parameter : tiny.bert().parameters()) parameter.mutable_value() *= Real(1.01);
  const Array before = tiny(texts());
  tiny.save(copy.path + "/new/folder");
  SentenceEncoder again(copy.path + "/new/folder");
  CHECK(distance(again(texts()), before) == 0);
  CHECK(again.longest() == 40);
  CHECK_THROWS_AS(tiny.save("/dev/null/x"), std::runtime_error);
}

TEST_CASE("SentenceEncoder says when numbers are not finite, or 0", "[sentence_encoder]") {
  const Copy copy;
  SentenceEncoder tiny(sentences::kTiny);
  Parameter weight = tiny.bert().embeddings.norm.weight;
  weight.mutable_value()(3) = std::numeric_limits<Real>::quiet_NaN();
  tiny.save(copy.path);
  copy.refused(copy.path +
               "/model.safetensors: all numbers must be finite, and not so in \"embeddings.LayerNorm.weight\"");
  for (const Real factor : {Real(0), std::numeric_limits<Real>::max() / 4}) {
    SentenceEncoder spoilt(sentences::kTiny);
    for (Parameter& parameter : spoilt.bert().parameters()) parameter.mutable_value() *= factor;
    CHECK_THROWS_WITH(spoilt({"a cat"}), Catch::Matchers::StartsWith("an embedding must have norm 1, and not "));
  }
}

TEST_CASE("SentenceEncoder refuses what is no such model", "[sentence_encoder]") {
  const Copy good;
  const std::string config = good.read("config.json"), weights = good.read("model.safetensors");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = config;
    REQUIRE(changed.find(from) != changed.npos);
    return changed.replace(changed.find(from), from.size(), to);
  };
  const auto spoilt = [&](const std::string& name, const std::string& text, const std::string& message) {
    INFO(name << " " << text.substr(0, 300));
    const Copy copy;
    if (text == "gone") {
      fs::remove(copy.path + "/" + name);
    } else {
      copy.write(name, text);
    }
    copy.refused(message);
  };
  for (const char* name : {"config.json", "vocab.txt", "model.safetensors"}) spoilt(name, "gone", name);
  check_refused([] { SentenceEncoder encoder("/none"); }, "/none/config.json: the model's folder must have this file");

  spoilt("config.json", "", "config.json: it must be an object of JSON");
  spoilt("config.json", "[1]", "config.json: it must be an object of JSON");
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  for (const char* key : {"model_type", "hidden_act", "architectures", "hidden_size", "layer_norm_eps", "unknown"}) {
    spoilt("config.json", "{\"" + std::string(key) + "\":" + nested + "}",
           "config.json: its JSON must nest at most 20");
  }
  spoilt("config.json", std::string(500'000, '['), "config.json: its JSON must nest at most 20 deep");
  spoilt("tokenizer_config.json", "{\"do_lower_case\":" + nested + "}", "its JSON must nest at most 20 deep");
  spoilt("config.json", std::string(2'000'000, ' '), "config.json: it must be shorter than 1 MB");
  spoilt("config.json", with("\"bert\"", "\"roberta\""), "model_type must be \"bert\"; got \"roberta\"");
  spoilt("config.json", with("\"model_type\"", "\"type\""), "model_type must be \"bert\"; got null");
  spoilt("config.json", with("BertModel", "BertForMaskedLM"), "architectures must be [\"BertModel\"]; got [\"BertForM");
  spoilt("config.json", with("gelu", "relu"), "hidden_act must be \"gelu\"; got \"relu\"");
  spoilt("config.json", with("\"hidden_size\": 32", "\"hidden_size\": -1"), "hidden_size must be a whole number");
  spoilt("config.json", with("\"hidden_size\": 32", "\"hidden_size\": 32.5"), "hidden_size must be a whole number");
  spoilt("config.json", with("\"hidden_size\": 32", "\"hidden_size\": 0"), "hidden_size must be a whole number");
  spoilt("config.json", with("\"hidden_size\": 32", "\"hidden_size\": 1000000000"), "as large as config.json says");
  spoilt("config.json", with("hidden_size", "hidden"), "hidden_size is missing");
  spoilt("config.json", with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 999999999"), "as config.json says");
  spoilt("config.json", with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1e30"), "must be a whole number");
  spoilt("config.json", with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"),
         "unexpected \"encoder.layer.1.attention.output.LayerNorm.bias\"");
  spoilt("config.json", with("\"intermediate_size\": 64", "\"intermediate_size\": 32"),
         "wrongly shaped \"encoder.layer.0.intermediate.dense.weight\" (64,32) for (32,32)");
  spoilt("config.json", with("\"num_attention_heads\": 4", "\"num_attention_heads\": 5"), "got 5 and 32");
  spoilt("config.json", with("1e-12", "-1"), "layer_norm_eps must be from 0 to 1");
  spoilt("config.json", with("\"pad_token_id\": 0", "\"pad_token_id\": -1"), "pad_token_id must be a token; got -1");
  spoilt("vocab.txt", good.read("vocab.txt") + "another one\n", "vocab_size must be the number of tokens in vocab.txt");
  spoilt("vocab.txt", "", "vocab.txt\"] the vocabulary must have the token; got [PAD]");
  const Copy large;
  fs::resize_file(large.path + "/vocab.txt", 100'000'001);
  large.refused("vocab.txt\"] the vocabulary must be at most 100 MB");
  const Copy loop;
  fs::create_symlink("sentence_bert_config.json", loop.path + "/loop");
  fs::rename(loop.path + "/loop", loop.path + "/sentence_bert_config.json");
  loop.refused("sentence_bert_config.json: the model's folder must have this file");
  spoilt("sentence_bert_config.json", "{}", "max_seq_length is missing");
  spoilt("sentence_bert_config.json", "{\"max_seq_length\": 49}", "max_position_embeddings; got 49 and 48");
  spoilt("tokenizer_config.json", "{\"do_lower_case\": false}", "do_lower_case must be true; got false");
  spoilt("model.safetensors", weights.substr(0, weights.size() - 4), "the arrays must end where the file ends");
  spoilt("model.safetensors", std::string(weights.size(), 'x'), "header");
  std::string renamed = weights;
  renamed.replace(renamed.find("pooler.dense.bias"), 17, "cooler.dense.bias");
  spoilt("model.safetensors", renamed, "missing \"pooler.dense.bias\"; unexpected \"cooler.dense.bias\"");
}
