#include "nn/transformer.hpp"

#include <cstring>

#include "nn/causality.hpp"
#include "optim/adam.hpp"
#include "optim/clip.hpp"
#include "tests/nn/transformer_reference.hpp"

using namespace transformer_reference;
using nn::Activation;

namespace {

/// Two layers on either side, of a size that can be checked.
nn::TransformerConfig tiny(Activation activation = Activation::gelu, bool norm_first = false, bool bias = true) {
  return {.width = 4,
          .heads = 2,
          .hidden = 6,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .dropout = 0,
          .activation = activation,
          .norm_first = norm_first,
          .bias = bias};
}

const std::vector<nn::TransformerConfig>& configs() {
  static const std::vector<nn::TransformerConfig> all = {tiny(Activation::relu), tiny(Activation::gelu, true),
                                                         tiny(Activation::swiglu), tiny(Activation::swiglu, true),
                                                         tiny(Activation::gelu, false, false)};
  return all;
}

std::optional<Mask> lengths_mask(const Json& lengths, std::size_t keys) {
  if (lengths.is_null()) return {};
  return valid_lengths(to_index(lengths, Shape{lengths.size()}), keys);
}

/// tests/reference/transformer.py's Translator. Token 0 is padding.
struct Translator : nn::Module {
  Translator(std::size_t vocabulary, std::size_t length, const nn::TransformerConfig& config, Rng& rng)
      : source_embedding(child<nn::Embedding>("source_embedding", vocabulary, config.width, rng, 0)),
        target_embedding(child<nn::Embedding>("target_embedding", vocabulary, config.width, rng, 0)),
        positions(child<nn::LearnedPositionalEncoding>("positions", length, config.width, rng)),
        transformer(child<nn::Transformer>("transformer", config, rng)),
        head(child<nn::Linear>("head", config.width, vocabulary, rng)) {}

  Tensor operator()(const Index& source, const Index& target) {
    return head(
        transformer(positions(source_embedding(source)), positions(target_embedding(target)), padding(source, 0)));
  }

  nn::Embedding source_embedding;
  nn::Embedding target_embedding;
  nn::LearnedPositionalEncoding positions;
  nn::Transformer transformer;
  nn::Linear head;
};

}  // namespace

TEST_CASE("Transformer modules' outputs and all gradients are PyTorch's from the same weights") {
  constexpr double tolerance = kDouble ? 1e-10 : 2e-4;
  for (const Json& c : reference()["cases"]) {
    CAPTURE(c["name"]);
    Rng rng;
    const auto config =
        tiny(c["activation"] == "relu" ? Activation::relu : Activation::gelu, c["norm_first"], c["bias"]);
    nn::TransformerEncoderLayer encoder_layer(config, rng);
    nn::TransformerDecoderLayer decoder_layer(config, rng);
    nn::Transformer transformer(config, rng);
    nn::Module& module = c["kind"] == "encoder layer"   ? static_cast<nn::Module&>(encoder_layer)
                         : c["kind"] == "decoder layer" ? static_cast<nn::Module&>(decoder_layer)
                                                        : transformer;
    REQUIRE(names_of(module) == c["parameters"].get<std::vector<std::string>>());
    double start = 1;
    for (Parameter& parameter : module.parameters()) parameter.mutable_value() = fill(parameter.shape(), start++, 0.5);

    Tensor source = fill({2, 5, 4}, 10), target = fill({2, 3, 4}, 20);
    source.set_requires_grad();
    target.set_requires_grad();
    std::optional<Mask> source_mask = lengths_mask(c["source_lengths"], 5);
    const std::optional<Mask> target_mask = lengths_mask(c["target_lengths"], 3);
    if (c["pairs"]) {
      const std::size_t queries = &module == &encoder_layer ? 5 : 3;
      Index lengths(Shape{2, queries});
      for (std::size_t i = 0; i < lengths.size(); ++i)
        lengths.data()[i] = static_cast<std::int64_t>((i % queries + 2 * (i / queries) + 1) % 5 + 1);
      source_mask = valid_lengths(lengths, 5);
    }
    Tape tape;
    std::vector<Tensor> leaves{source, target};
    Tensor y;
    if (&module == &encoder_layer) {
      leaves = {source};
      y = encoder_layer(source, {.mask = source_mask, .causal = c["causal"]});
    } else if (&module == &decoder_layer) {
      leaves = {target, source};
      y = decoder_layer(target, source, {.self = target_mask, .memory = source_mask});
    } else {
      y = transformer(source, target, source_mask, target_mask);
    }
    check_close(y.value(), to_array(c["output"], y.shape()), tolerance);
    for (const Parameter& parameter : module.parameters()) leaves.push_back(parameter);
    const std::vector<Tensor> gradients = tape.gradient(y, leaves, {.seed = Tensor(fill(y.shape(), 5))});
    REQUIRE(gradients.size() == c["gradients"].size());
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      CAPTURE(i);
      check_close(gradients[i].value(), to_array(c["gradients"][i], leaves[i].shape()), tolerance);
    }
  }
}

TEST_CASE("A SwiGLU layer is silu(gate x) linear1(x) between its maps") {
  Rng rng(1);
  nn::TransformerEncoderLayer layer(tiny(Activation::swiglu, true), rng);
  randomize(layer, rng);
  const Tensor x = rng.normal({2, 3, 4});
  const Tensor y = x + layer.self_attn(layer.norm1(x));
  const Tensor z = layer.norm2(y);
  check_close(layer(x), y + layer.linear2(silu((*layer.gate)(z)) * layer.linear1(z)));
  CHECK(!nn::TransformerEncoderLayer(tiny(), rng).gate);
}

TEST_CASE("Gradients of first and second order of every Transformer layer, with and without masks") {
  Rng rng(2);
  for (const nn::TransformerConfig& config : configs()) {
    CAPTURE(static_cast<int>(config.activation), config.norm_first, config.bias);
    const Tensor x = rng.normal({2, 3, 4}), memory = rng.normal({2, 4, 4});
    nn::TransformerEncoderLayer encoder(config, rng);
    randomize(encoder, rng);
    check_model(encoder, {x}, [&](const std::vector<Tensor>& t) { return encoder(t[0]); });
    check_model(encoder, {x}, [&](const std::vector<Tensor>& t) {
      return encoder(t[0], {.mask = valid_lengths(Index{3, 2}, 3), .causal = true});
    });
    nn::TransformerDecoderLayer decoder(config, rng);
    randomize(decoder, rng);
    const nn::DecoderMasks masks{valid_lengths(Index{3, 1}, 3), valid_lengths(Index{2, 4}, 4)};
    check_model(decoder, {x, memory}, [&](const std::vector<Tensor>& t) { return decoder(t[0], t[1]); });
    check_model(decoder, {x, memory}, [&](const std::vector<Tensor>& t) { return decoder(t[0], t[1], masks); });
  }
}

TEST_CASE("Gradients of first and second order of an encoder-decoder of two blocks each, from tokens to its loss") {
  Rng rng(3);
  const Index source{{3, 1, 4, 2}, {2, 3, 0, 0}}, target{{1, 3, 2}, {1, 4, 0}}, labels{{3, 2, 4}, {4, 0, 0}};
  for (bool norm_first : {false, true}) {
    CAPTURE(norm_first);
    Translator model(5, 4, tiny(norm_first ? Activation::swiglu : Activation::gelu, norm_first), rng);
    randomize(model, rng);
    check_model(model, {}, [&](const std::vector<Tensor>&) {
      return cross_entropy(model(source, target), labels, {.ignore_index = 0});
    });
  }
}

TEST_CASE("A decoder sees no later target, in training and in evaluation, alone and with padding") {
  Rng rng(4);
  for (const nn::TransformerConfig& plain : configs()) {
    for (double dropout : {0.0, 0.3}) {
      nn::TransformerConfig config = plain;
      config.dropout = dropout;
      nn::Transformer model(config, rng);
      const Tensor source = rng.normal({2, 3, 4}), target = rng.normal({2, 6, 4});
      const Mask source_mask = valid_lengths(Index{3, 2}, 3);
      const Rng before = rng;
      for (bool training : {true, false}) {
        model.train(training);
        for (bool padded : {false, true}) {
          std::optional<Mask> target_mask;
          if (padded) target_mask = valid_lengths(Index{6, 2}, 6);
          CAPTURE(config.norm_first, dropout, training, padded);
          const auto decode = [&](const Tensor& t) {
            rng = before;  // the same elements are dropped each time
            return model(source, t, source_mask, target_mask);
          };
          CHECK(nn::check_causality(decode, target).message == "");
        }
      }
      // The source is seen whole, but for its padding.
      const auto encode = [&](const Tensor& s) { return model(s, slice(target, 1, 0, 3), source_mask); };
      CHECK(!nn::check_causality(encode, source));
      Array changed = source.value();
      changed(1, 2, 0) += 100;
      check_close(encode(changed), encode(source), 0);
    }
  }
}

TEST_CASE("Dropout acts in training only, on every part of a layer") {
  Rng rng(5);
  nn::TransformerConfig config = tiny();
  config.dropout = 1;
  config.norm_first = true;
  nn::TransformerDecoderLayer layer(config, rng);
  const Tensor x = rng.normal({2, 3, 4}), memory = rng.normal({2, 4, 4});
  check_close(layer(x, memory), x, 0);  // nothing is added
  layer.eval();
  CHECK(amax(abs(layer(x, memory) - x)).item() > Real(0.01));
  check_close(layer(x, memory), layer(x, memory), 0);
}

TEST_CASE("Decoding by steps equals decoding all at once") {
  Rng rng(6);
  for (nn::TransformerConfig config : configs()) {
    config.width = 8;
    config.hidden = 20;
    nn::Transformer model(config, rng);
    randomize(model, rng);
    model.eval();
    for (std::size_t length : {7, 70}) {
      const Tensor source = rng.normal({3, 5, 8}), target = rng.normal({3, length, 8});
      const Mask mask = valid_lengths(Index{5, 1, 3}, 5);
      for (const std::optional<Mask>& source_mask : {std::optional<Mask>(), std::optional<Mask>(mask)}) {
        const Tensor at_once = model(source, target, source_mask);
        const Tensor memory = model.encoder(source, {.mask = source_mask});
        for (std::size_t most : {1, 3, 69}) {
          CAPTURE(config.norm_first, length, most);
          std::vector<nn::DecoderCache> cache = model.decoder.start(memory);
          std::vector<Tensor> parts;
          for (std::size_t first = 0; first < length; first += most) {
            parts.push_back(
                model.decoder(positions(target, first, std::min(first + most, length)), cache, source_mask));
          }
          check_close(concat(parts, 1), at_once, kIncremental);
          CHECK(cache[1].self.keys.shape() == Shape{3, length, 8});
          CHECK(cache[1].memory.values.shape() == Shape{3, 5, 8});
        }
      }
    }
  }
}

TEST_CASE("An encoder layer that goes on from a cache equals a causal one") {
  Rng rng(7);
  nn::TransformerEncoderLayer layer(tiny(Activation::swiglu), rng);
  randomize(layer, rng);
  const Tensor x = rng.normal({2, 5, 4});
  for (bool keep : {false, true}) {
    layer.self_attn.keep_weights(keep);
    nn::KeyValues cache;
    const Tensor y = concat({layer(positions(x, 0, 1), cache), layer(positions(x, 1, 4), cache)}, 1);
    check_close(y, positions(layer(x, {.causal = true}), 0, 4), kIncremental);
    const Tensor last = layer(positions(x, 4, 5), cache);
    check_close(last, positions(layer(x, {.causal = true}), 4, 5), kIncremental);
  }
}

TEST_CASE("Batch items of a cache can be picked: beams that go on from the best ones") {
  Rng rng(8);
  nn::TransformerDecoder decoder(tiny(), rng);
  const Tensor memory = rng.normal({3, 4, 4}), x = rng.normal({3, 2, 4}), next = rng.normal({3, 1, 4});
  std::vector<nn::DecoderCache> cache = decoder.start(memory);
  decoder(x, cache);
  const Index best{2, 0, 2};
  const auto pick = [&](Tensor& t) { t = index_select(t, 0, best); };
  for (nn::DecoderCache& layer : cache) {
    for (nn::KeyValues* kept : {&layer.self, &layer.memory}) {
      pick(kept->keys);
      pick(kept->values);
    }
  }
  const Tensor whole = decoder(concat({index_select(x, 0, best), next}, 1), index_select(memory, 0, best));
  check_close(decoder(next, cache), positions(whole, 2, 3), kIncremental);
}

TEST_CASE("Gradients pass through decoding by steps") {
  Rng rng(9);
  nn::TransformerDecoder decoder(tiny(Activation::gelu, true), rng);
  randomize(decoder, rng);
  const auto by_steps = [&](const std::vector<Tensor>& t) {
    std::vector<nn::DecoderCache> cache = decoder.start(t[1]);
    return concat({decoder(positions(t[0], 0, 2), cache), decoder(positions(t[0], 2, 3), cache)}, 1);
  };
  const auto at_once = [&](const std::vector<Tensor>& t) { return decoder(t[0], t[1]); };
  const std::vector<Tensor> inputs{rng.normal({2, 3, 4}), rng.normal({2, 4, 4})};
  const Tensor dy = rng.normal({2, 3, 4});
  const auto got = gradients_of(by_steps, inputs, dy), expected = gradients_of(at_once, inputs, dy);
  for (std::size_t i = 0; i < 2; ++i) check_close(got[i], expected[i], kDouble ? 1e-11 : 1e-4);
}

TEST_CASE("A Transformer starts as PyTorch's does") {
  Rng rng(10);
  const nn::TransformerConfig defaults;
  CHECK((defaults.width == 512 && defaults.heads == 8 && defaults.hidden == 2048 && defaults.encoder_layers == 6 &&
         defaults.decoder_layers == 6 && defaults.dropout == 0.1 && defaults.activation == Activation::relu &&
         !defaults.norm_first && defaults.bias));
  const nn::Transformer model({.width = 32, .heads = 4, .hidden = 64, .encoder_layers = 1, .decoder_layers = 1}, rng);
  for (const auto& [name, parameter] : model.named_parameters()) {
    CAPTURE(name);
    if (parameter.rank() > 1) {
      const double bound = std::sqrt(6.0 / static_cast<double>(parameter.extent(0) + parameter.extent(1)));
      CHECK(amax(abs(parameter)).item() <= bound * (1 + 1e-6));
      CHECK(amax(abs(parameter)).item() > 0.98 * bound);
    } else if (name.find("norm") != std::string::npos) {
      check_close(parameter, full(parameter.shape(), name.ends_with("weight") ? 1 : 0), 0);
    } else if (name.find("linear") == std::string::npos) {
      check_close(parameter, zeros(parameter.shape()), 0);
    }
  }
  const nn::TransformerEncoder bare({.width = 4, .heads = 1, .hidden = 4, .encoder_layers = 0, .final_norm = false},
                                    rng);
  CHECK(bare.parameters().empty());
}

TEST_CASE("An encoder-decoder trained with Adam and clipping from PyTorch's weights loses as PyTorch's does") {
  const Json& training = reference()["translator"];
  Rng rng;
  nn::TransformerConfig config = tiny(Activation::relu);
  config.width = 8;
  config.hidden = 16;
  Translator model(11, 6, config, rng);
  start_from(training["start"], model);
  optim::Adam adam(model.parameters(), {.learning_rate = 0.01});
  const std::size_t batches = training["sources"].size();
  REQUIRE(training["losses"].size() == 50);
  for (std::size_t step = 0; step < 50; ++step) {
    CAPTURE(step);
    const Index source = to_index(training["sources"][step % batches], {4, 6});
    const Index target = to_index(training["targets"][step % batches], {4, 7});
    Tape tape;
    const Tensor loss = cross_entropy(model(source, columns(target, 0, 6)), columns(target, 1, 7), {.ignore_index = 0});
    REQUIRE(loss.item() == Approx(training["losses"][step].get<double>()).epsilon(kReplay));
    adam.zero_grad();
    tape.backward(loss);
    const double norm = optim::clip_grad_norm(model.parameters(), 1);
    REQUIRE(norm == Approx(training["norms"][step].get<double>()).epsilon(10 * kReplay));
    adam.step();
  }
}

TEST_CASE("Transformer modules refuse what does not fit, in one line, and leave a cache alone then") {
  Rng rng(11);
  check_refused([&] { nn::TransformerEncoderLayer({.width = 6, .heads = 4}, rng); },
                "[MultiHeadAttention] the size must be divisible by the number of heads; got 6 and 4");
  check_refused([&] { nn::TransformerEncoderLayer({.width = 4, .heads = 2, .hidden = 0}, rng); }, "[Linear]");
  check_refused([&] { nn::TransformerEncoderLayer({.width = 4, .heads = 2, .dropout = -1}, rng); }, "[Dropout]");
  nn::Transformer model(tiny(), rng);
  const Tensor x = rng.normal({2, 3, 4});
  check_refused([&] { model(x, x, causal(3)); }, "[Transformer] the source mask must be (B,1,S); got (3,3)");
  check_refused([&] { model(x, zeros({1, 3, 4})); }, "must have the same batch");
  check_refused([&] { model(x, zeros({2, 3, 5})); }, "[MultiHeadAttention] the values' last axis");
  check_refused([&] { model(zeros({3, 4}), x); }, "must be (B,T,width)");
  check_refused([&] { model(x, x, valid_lengths(Index{1, 2}, 4)); }, "mask must broadcast");
  std::vector<nn::DecoderCache> none;
  check_refused([&] { model.decoder(x, none); },
                "[TransformerDecoder] there must be a cache for each layer, from start(); got 0 and 2");
  std::vector<nn::DecoderCache> cache = model.decoder.start(x);
  model.decoder(x, cache);
  check_refused([&] { model.decoder(zeros({1, 1, 4}), cache); }, "[MultiHeadAttention] the cache must be of x's batch");
  check_refused([&] { model.decoder(zeros({2, 1, 3}), cache); }, "[MultiHeadAttention] the values' last axis");
  check_refused([&] { model.decoder(zeros({2, 1, 4}), cache, causal(2)); }, "mask must broadcast");
  for (const nn::DecoderCache& layer : cache) CHECK(layer.self.keys.extent(1) == 3);
}
