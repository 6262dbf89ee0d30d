#include "nn/language_model.hpp"

#include "nn/causality.hpp"
#include "optim/adam.hpp"
#include "optim/schedule.hpp"
#include "tests/nn/transformer_reference.hpp"

using namespace transformer_reference;
using nn::Activation;

namespace {

nn::LanguageModelConfig tiny(Activation activation = Activation::gelu, bool bias = true, bool tied = true) {
  return {.vocabulary = 7,
          .context = 6,
          .layers = 2,
          .heads = 2,
          .width = 4,
          .activation = activation,
          .bias = bias,
          .tied = tied};
}

const std::vector<nn::LanguageModelConfig>& configs() {
  static const std::vector<nn::LanguageModelConfig> all = {tiny(), tiny(Activation::swiglu, false),
                                                           tiny(Activation::relu, true, false)};
  return all;
}

}  // namespace

TEST_CASE("Gradients of first and second order of a language model of two blocks, from tokens to its loss") {
  Rng rng(1);
  const Index tokens{{3, 1, 6, 2}, {2, 0, 0, 5}}, labels{{1, 6, 2, 4}, {0, 0, 5, 3}};
  for (const nn::LanguageModelConfig& config : configs()) {
    CAPTURE(static_cast<int>(config.activation), config.bias, config.tied);
    nn::LanguageModel model(config, rng);
    randomize(model, rng);
    check_model(model, {}, [&](const std::vector<Tensor>&) { return cross_entropy(model(tokens), labels); });
    check_model(model, {}, [&](const std::vector<Tensor>&) { return model(tokens, padding(tokens, 5)); });
  }
}

TEST_CASE("A language model sees no later token, in training and in evaluation, alone and with padding") {
  Rng rng(2);
  const Index tokens{{1, 6, 3, 6, 2, 4}, {4, 5, 6, 0, 0, 0}};
  for (nn::LanguageModelConfig config : configs()) {
    for (double dropout : {0.0, 0.3}) {
      config.dropout = dropout;
      nn::LanguageModel model(config, rng);
      randomize(model, rng);
      const Mask unpadded = padding(tokens, 0);
      const Rng before = rng;
      for (bool training : {true, false}) {
        model.train(training);
        for (bool padded : {false, true}) {
          CAPTURE(dropout, training, padded);
          const auto logits = [&](const Index& t) {
            rng = before;  // the same elements are dropped each time
            return padded ? model(t, unpadded) : model(t);
          };
          CHECK(nn::check_causality(logits, tokens, 7).message == "");
        }
      }
    }
  }
}

TEST_CASE("A language model that is given tokens by steps scores them as all at once") {
  Rng rng(3);
  for (nn::LanguageModelConfig config : configs()) {
    config.context = 70;
    config.width = 8;
    config.dropout = 0.5;
    nn::LanguageModel model(config, rng);
    randomize(model, rng);
    model.eval();
    Index tokens(Shape{2, 70});
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens.data()[i] = static_cast<std::int64_t>(rng.below(7));
    const Tensor at_once = model(tokens);
    CHECK(at_once.shape() == Shape{2, 70, 7});
    for (std::size_t most : {1, 4, 69, 70}) {
      CAPTURE(most);
      std::vector<nn::KeyValues> cache;
      std::vector<Tensor> parts;
      for (std::size_t first = 0; first < 70; first += most) {
        parts.push_back(model(columns(tokens, first, std::min<std::size_t>(first + most, 70)), cache));
      }
      check_close(concat(parts, 1), at_once, kIncremental);
      REQUIRE(cache.size() == 2);
      check_refused([&] { model(columns(tokens, 0, 1), cache); },
                    "the positions must be at least 0 and below the length");
      CHECK(cache[0].keys.shape() == Shape{2, 70, 8});
      CHECK(cache[1].values.shape() == Shape{2, 70, 8});
    }
  }
}

TEST_CASE("A tied head is the token embedding: counted, listed and updated once, under both names") {
  Rng rng(4);
  nn::LanguageModel tied(tiny(), rng);
  nn::LanguageModel apart(tiny(Activation::gelu, true, false), rng);
  CHECK(tied.head.weight.same_as(tied.token_embedding.weight));
  CHECK(!apart.head.weight.same_as(apart.token_embedding.weight));
  CHECK(names_of(tied) == names_of(apart));
  CHECK(names_of(tied).back() == "head.weight");
  CHECK(apart.parameter_count() == tied.parameter_count() + 7 * 4);
  CHECK(apart.parameters().size() == tied.parameters().size() + 1);
  CHECK(tied.parameters().size() + 1 == tied.named_parameters().size());

  // Its gradient is the sum of both uses'.
  for (auto [name, parameter] : apart.named_parameters()) {
    for (const auto& [other, value] : tied.named_parameters()) {
      if (name == other) parameter.mutable_value() = value.value();
    }
  }
  const Index tokens{{1, 2, 3}};
  for (nn::LanguageModel* model : {&tied, &apart}) {
    Tape tape;
    tape.backward(cross_entropy((*model)(tokens), Index{{2, 3, 4}}));
  }
  const Array both = apart.token_embedding.weight.grad() + apart.head.weight.grad();
  check_close(tied.token_embedding.weight.grad(), both, kDouble ? 1e-13 : 1e-6);
}

TEST_CASE("A language model's first values: normal, smaller where a part ends, biases 0, so that it knows nothing") {
  Rng rng(5);
  nn::LanguageModel model({.vocabulary = 100, .context = 50, .layers = 8, .width = 64, .bias = true}, rng);
  for (const auto& [name, parameter] : model.named_parameters()) {
    CAPTURE(name);
    if (parameter.rank() == 1) {
      check_close(parameter, full(parameter.shape(), name.ends_with("weight") ? 1 : 0), 0);
      continue;
    }
    const bool ends = name.ends_with("out_proj.weight") || name.ends_with("linear2.weight");
    const double expected = ends ? 0.02 / 4 : 0.02;
    CHECK(std::sqrt(mean(square(parameter)).item()) == Approx(expected).epsilon(0.05));
  }
  const double loss = cross_entropy(model(Index{{1, 2, 3, 4}}), Index{{2, 3, 4, 5}}).item();
  CHECK(loss == Approx(std::log(100.0)).epsilon(0.05));
  CHECK(nn::LanguageModel({.vocabulary = 9, .width = 12, .activation = Activation::swiglu}, rng).parameter_count() ==
        nn::LanguageModel({.vocabulary = 9, .width = 12}, rng).parameter_count());
}

TEST_CASE("A language model trained with AdamW and warm-up from PyTorch's weights loses as PyTorch's does") {
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    const Json& training = reference()[tied ? "tied_language_model" : "language_model"];
    Rng rng;
    nn::LanguageModel model(
        {.vocabulary = 11, .context = 6, .layers = 2, .heads = 2, .width = 8, .bias = true, .tied = tied}, rng);
    start_from(training["start"], model);
    optim::AdamW adamw(model.parameters(), {.learning_rate = 0.01});
    const optim::Schedule schedule = optim::schedule::warmup(10);
    REQUIRE(training["losses"].size() == 50);
    for (std::size_t step = 0; step < 50; ++step) {
      CAPTURE(step);
      const Index tokens = to_index(training["tokens"][step % training["tokens"].size()], {4, 7});
      Tape tape;
      const Tensor loss = cross_entropy(model(columns(tokens, 0, 6)), columns(tokens, 1, 7));
      REQUIRE(loss.item() == Approx(training["losses"][step].get<double>()).epsilon(kReplay));
      adamw.zero_grad();
      tape.backward(loss);
      adamw.scale_learning_rates(schedule(static_cast<std::int64_t>(step)));
      adamw.step();
    }
  }
}

TEST_CASE("A language model refuses what does not fit, in one line") {
  Rng rng(6);
  const auto with = [](auto change) {
    nn::LanguageModelConfig config = tiny();
    change(config);
    return config;
  };
  check_refused([&] { nn::LanguageModel({}, rng); }, "[Embedding] the sizes must be positive; got 0 and 128");
  check_refused([&] { nn::LanguageModel(with([](auto& c) { c.context = 0; }), rng); }, "length and width");
  check_refused([&] { nn::LanguageModel(with([](auto& c) { c.layers = 0; }), rng); }, "there must be a layer; got 0");
  check_refused([&] { nn::LanguageModel(with([](auto& c) { c.heads = 3; }), rng); },
                "divisible by the number of heads");
  nn::LanguageModel model(tiny(), rng);
  check_refused([&] { model(Index{1, 2}); }, "[LanguageModel] the tokens must be (B,T); got (2)");
  check_refused([&] { model(Index{{1, 7}}); }, "[embedding]");
  check_refused([&] { model(Index(Shape{1, 7})); }, "the positions must be at least 0 and below the length");
  std::vector<nn::KeyValues> cache(3);
  check_refused([&] { model(Index{{1, 2}}, cache); }, "the cache must have an entry for each layer; got 3 and 2");
  cache.clear();
  model(Index{{1, 2}, {3, 4}}, cache);
  check_refused([&] { model(Index{{1, 2}}, cache); }, "the cache must be of x's batch");
  check_refused([&] { model(Index{{1, 2}, {3, 9}}, cache); }, "[embedding]");
  for (const nn::KeyValues& layer : cache) CHECK(layer.keys.extent(1) == 2);
  CHECK(model(Index(Shape{2, 0})).shape() == Shape{2, 0, 7});
}
