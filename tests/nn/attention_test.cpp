#include "nn/attention.hpp"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "nn/causality.hpp"
#include "optim/sgd.hpp"
#include "tests/check.hpp"

using namespace tapegrad;
using Json = nlohmann::json;

namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.value().data(), b.value().data(), a.size() * sizeof(Real)) == 0;
}

bool all_finite(const Tensor& x) {
  return std::all_of(x.value().storage().begin(), x.value().storage().end(), [](Real v) { return std::isfinite(v); });
}

Mask random_mask(const Shape& shape, Rng& rng) {
  Mask mask(shape);
  for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = rng.uniform() < 0.6;
  return mask;
}

/// Elements scale cos(start + 0.7 i) in row-major order, as tests/reference/attention.py has them.
Array fill(const Shape& shape, double start, double scale = 1) {
  Array array = empty_array(shape);
  for (std::size_t i = 0; i < array.size(); ++i) {
    array.data()[i] = static_cast<Real>(scale * std::cos(start + 0.7 * static_cast<double>(i)));
  }
  return array;
}

void fill_parameters(nn::Module& module) {
  double start = 1;
  for (Parameter& parameter : module.parameters()) parameter.mutable_value() = fill(parameter.shape(), start++, 0.5);
}

/// How far a float may be from PyTorch's double; doubles: 1e-10.
constexpr double kReference = kDouble ? 1e-10 : 2e-4;

void check_reference(const Array& got, const Json& expected) {
  REQUIRE(got.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double right = expected[i].get<double>();
    worst = std::max(worst, std::abs(got.data()[i] - right) / (1 + std::abs(right)));
  }
  CHECK(worst <= kReference);
}

const Json& reference() {
  static const Json content = [] {
    std::ifstream file(TAPEGRAD_SOURCE_DIR "/tests/reference/attention.json");
    return Json::parse(file);
  }();
  return content;
}

/// Gradients of first and second order with respect to the inputs and the parameters. The members are handles: they are
/// pointed to the checker's Tensors for each call, then back.
void check_module(const std::vector<Parameter*>& members, std::vector<Tensor> inputs, const Function& call) {
  const std::size_t count = inputs.size();
  for (const Parameter* member : members) inputs.push_back(member->detach());
  check_gradients(
      [&](const std::vector<Tensor>& x) {
        const auto swap_all = [&](std::vector<Tensor>& others) {
          for (std::size_t i = 0; i < members.size(); ++i) std::swap(static_cast<Tensor&>(*members[i]), others[i]);
        };
        std::vector<Tensor> others(x.begin() + static_cast<std::ptrdiff_t>(count), x.end());
        swap_all(others);
        const Tensor y = call(x);
        swap_all(others);
        return y;
      },
      inputs);
}

std::vector<Parameter*> members_of(nn::MultiHeadAttention& attention) {
  std::vector<Parameter*> members{&attention.in_proj_weight, &attention.q_proj_weight, &attention.k_proj_weight,
                                  &attention.v_proj_weight,  &attention.in_proj_bias,  &attention.out_proj.weight,
                                  &attention.out_proj.bias};
  std::erase_if(members, [](const Parameter* parameter) { return !parameter->defined(); });
  return members;
}

std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) names.push_back(name);
  return names;
}

/// A layer's worth of attention that sees the future unless it is told not to.
AttentionOptions causal_options(std::optional<Mask> mask = {}) { return {.mask = std::move(mask), .causal = true}; }

}  // namespace

TEST_CASE("Linear has PyTorch's names, layout and first values") {
  Rng rng(1);
  const nn::Linear layer(16, 300, rng);
  CHECK(names_of(layer) == std::vector<std::string>{"weight", "bias"});
  CHECK(layer.weight.shape() == Shape{300, 16});
  CHECK(layer.bias.shape() == Shape{300});
  for (const Parameter& parameter : layer.parameters()) {
    CHECK(amax(abs(parameter)).item() <= Real(0.25));
    CHECK(amax(parameter).item() > Real(0.24));
    CHECK(amin(parameter).item() < Real(-0.24));
  }
  const nn::Linear plain(3, 2, rng, false);
  CHECK(names_of(plain) == std::vector<std::string>{"weight"});
  CHECK(plain(zeros({4, 5, 3})).shape() == Shape{4, 5, 2});
  check_refused([&] { plain(zeros({4})); }, "[linear]");
  check_refused([&] { nn::Linear(0, 2, rng); }, "[Linear] the sizes must be positive; got 0 and 2");
}

TEST_CASE("Dropout passes x and its gradient in evaluation and for p = 0, and exact zeros for p = 1") {
  Rng rng(2);
  const Tensor x{1, 2};
  const auto output_and_gradient = [&](double p, bool training) {
    nn::Dropout layer(p, rng);
    layer.train(training);
    return std::pair(layer(x), gradient_of([&](const Tensor& t) { return layer(t); }, x));
  };
  for (const auto& [p, training] : {std::pair(0.5, false), {1.0, false}, {0.0, true}}) {
    const auto [y, dx] = output_and_gradient(p, training);
    CHECK(y.same_as(x));
    check_close(dx, ones({2}), 0);
  }
  const auto [y, dx] = output_and_gradient(1, true);
  check_close(y, zeros({2}), 0);
  check_close(dx, zeros({2}), 0);
  check_close(dropout(Tensor{kNaN, kInf}, 1, rng), zeros({2}), 0);
  for (double p : {-0.1, 1.1, static_cast<double>(kNaN)}) {
    check_refused([&] { nn::Dropout(p, rng); }, "[Dropout] p must be from 0 to 1");
    check_refused([&] { dropout(x, p, rng); }, "[dropout] p must be from 0 to 1");
  }
}

TEST_CASE("Dropout drops a share p, scales the rest, and sends gradients the same way") {
  Rng rng(3);
  const Tensor x = ones({100000});
  Tensor y;
  const Tensor dx = gradient_of([&](const Tensor& t) { return y = dropout(t, 0.25, rng); }, x);
  CHECK(same_bits(y.detach(), dx));
  const std::size_t kept = count_true(y != Tensor(0));
  CHECK(kept == count_true(y == Tensor(1 / Real(0.75))));
  CHECK(std::abs(static_cast<double>(kept) / 1e5 - 0.75) < 5 * std::sqrt(0.25 * 0.75 / 1e5));
  Rng a(4), b(4);
  CHECK(same_bits(dropout(x, 0.5, a), dropout(x, 0.5, b)));
  CHECK(!same_bits(dropout(x, 0.5, a), dropout(x, 0.5, a)));
  check_gradients(
      [](const std::vector<Tensor>& xs) {
        Rng own(5);
        return dropout(square(xs[0]), 0.5, own);
      },
      {rng.normal({3, 4})});
}

TEST_CASE("AdditiveAttention is w_v tanh(W_q q + W_k k) softmaxed over the valid keys") {
  Rng rng(6);
  nn::AdditiveAttention attention(2, 3, 4, rng);
  CHECK(names_of(attention) == std::vector<std::string>{"W_q.weight", "W_k.weight", "w_v.weight"});
  const Tensor q = rng.normal({2, 3, 2}), k = rng.normal({2, 5, 3}), v = rng.normal({2, 5, 2});
  const std::vector<std::size_t> lengths{2, 5};
  attention.keep_weights();
  const Tensor y = attention(q, k, v, valid_lengths(Index{2, 5}, 5));
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<double> weights;
      double total = 0;
      for (std::size_t j = 0; j < lengths[b]; ++j) {
        double score = 0;
        for (std::size_t h = 0; h < 4; ++h) {
          double feature = 0;
          for (std::size_t c = 0; c < 2; ++c) feature += attention.W_q.weight.value()(h, c) * q.value()(b, i, c);
          for (std::size_t c = 0; c < 3; ++c) feature += attention.W_k.weight.value()(h, c) * k.value()(b, j, c);
          score += attention.w_v.weight.value()(0, h) * std::tanh(feature);
        }
        weights.push_back(std::exp(score));
        total += weights.back();
      }
      for (std::size_t c = 0; c < 2; ++c) {
        double expected = 0;
        for (std::size_t j = 0; j < lengths[b]; ++j) expected += weights[j] / total * v.value()(b, j, c);
        CHECK(y.value()(b, i, c) == Approx(expected).margin(1e-6));
      }
      for (std::size_t j = 0; j < 5; ++j) {
        const double expected = j < lengths[b] ? weights[j] / total : 0;
        CHECK(attention.attention_weights().value()(b, i, j) == Approx(expected).margin(1e-6));
      }
    }
  }
  // The chapter's example: equal keys, so the average of the valid values.
  nn::AdditiveAttention chapter(20, 2, 8, rng);
  const Tensor values = broadcast_to(reshape(arange(40), Shape{1, 10, 4}), {2, 10, 4});
  check_close(chapter(rng.normal({2, 1, 20}), ones({2, 10, 2}), values, valid_lengths(Index{2, 6}, 10)),
              Tensor{{{2, 3, 4, 5}}, {{10, 11, 12, 13}}}, 1e-6);
}

TEST_CASE("DotProductAttention is the same fused, with weights kept, and with dropout of 0") {
  Rng rng(7);
  nn::DotProductAttention attention(0, rng);
  nn::DotProductAttention dropping(0.5, rng);
  const Tensor q = rng.normal({2, 3, 4}), k = rng.normal({2, 5, 4}), v = rng.normal({2, 5, 6});
  const Mask mask = valid_lengths(Index{{0, 5, 2}, {1, 3, 4}}, 5);
  for (const std::optional<Mask>& m : {std::optional<Mask>(), {mask}, {causal(3, 5)}, {causal(3, 5) && mask}}) {
    attention.keep_weights(false);
    const Tensor fused = attention(q, k, v, m);
    CHECK(fused.shape() == Shape{2, 3, 6});
    attention.keep_weights();
    check_close(attention(q, k, v, m), fused, kDouble ? 1e-14 : 1e-6);
    CHECK(attention.attention_weights().shape() == Shape{2, 3, 5});
    check_close(bmm(attention.attention_weights(), v), fused, kDouble ? 1e-14 : 1e-6);
    dropping.eval();
    check_close(dropping(q, k, v, m), fused, 0);
    dropping.train();
    CHECK(!same_bits(dropping(q, k, v, m), fused));
  }
}

TEST_CASE("Kept weights are of the last call, before dropout and without a graph; none are refused") {
  Rng rng(8);
  nn::MultiHeadAttention attention(6, 3, rng, {.dropout = 0.5});
  check_refused([&] { attention.attention_weights(); }, "[attention_weights] no weights were kept");
  const Tensor x = rng.normal({2, 4, 6});
  attention(x);
  check_refused([&] { attention.attention_weights(); }, "no weights were kept");
  attention.keep_weights();
  Tape tape;
  attention(x);
  const Tensor weights = attention.attention_weights();
  CHECK(!weights.requires_grad());
  CHECK(weights.shape() == Shape{2, 3, 4, 4});
  check_close(sum(weights, 3), ones({2, 3, 4}));
}

TEST_CASE("Attention modules' gradients of first and second order: masks, odd sizes, one head, one key, no batch") {
  Rng rng(9);
  {
    nn::AdditiveAttention attention(2, 3, 4, rng);
    const std::vector<Parameter*> members{&attention.W_q.weight, &attention.W_k.weight, &attention.w_v.weight};
    for (const Shape& s : {Shape{2, 3, 5}, Shape{1, 2, 1}, Shape{0, 2, 3}}) {
      for (bool masked : {false, true}) {
        std::optional<Mask> mask;
        if (masked) mask = random_mask(s, rng) && causal(s[1], s[2]);
        check_module(members, {rng.normal({s[0], s[1], 2}), rng.normal({s[0], s[2], 3}), rng.normal({s[0], s[2], 2})},
                     [&](const std::vector<Tensor>& x) { return attention(x[0], x[1], x[2], mask); });
      }
    }
  }
  {
    nn::DotProductAttention attention(0, rng);
    for (bool keep : {false, true}) {
      attention.keep_weights(keep);
      check_module({}, {rng.normal({2, 3, 5}), rng.normal({2, 4, 5}), rng.normal({2, 4, 3})},
                   [&](const std::vector<Tensor>& x) {
                     return attention(x[0], x[1], x[2], valid_lengths(Index{0, 3}, 4));
                   });
    }
  }
  for (const nn::MultiHeadOptions& options : {nn::MultiHeadOptions{},
                                              {.bias = false},
                                              {.key_size = 5, .value_size = 3},
                                              {.value_size = 2, .bias = false},
                                              {.query_size = 4},
                                              {.query_size = 7, .key_size = 5, .value_size = 3}}) {
    for (std::size_t heads : {1, 3}) {
      nn::MultiHeadAttention attention(6, heads, rng, options);
      for (Parameter& parameter : attention.parameters())
        parameter.mutable_value() = rng.normal(parameter.shape(), 0, 0.5);
      const std::size_t query_size = options.query_size ? options.query_size : 6;
      const std::size_t key_size = options.key_size ? options.key_size : 6;
      const std::size_t value_size = options.value_size ? options.value_size : 6;
      for (const Shape& s : {Shape{2, 3, 5}, Shape{1, 3, 1}, Shape{0, 2, 3}}) {
        const AttentionOptions masks{.mask = random_mask(s, rng)};
        check_module(members_of(attention),
                     {rng.normal({s[0], s[1], query_size}), rng.normal({s[0], s[2], key_size}),
                      rng.normal({s[0], s[2], value_size})},
                     [&](const std::vector<Tensor>& x) { return attention(x[0], x[1], x[2], masks); });
      }
      if (query_size == 6 && key_size == 6 && value_size == 6) {
        check_module(members_of(attention), {rng.normal({2, 4, 6})}, [&](const std::vector<Tensor>& x) {
          return attention(x[0], {.mask = valid_lengths(Index{0, 3}, 4), .causal = true});
        });
      }
    }
  }
}

TEST_CASE("MultiHeadAttention starts as PyTorch's does") {
  Rng rng(10);
  const nn::MultiHeadAttention packed(32, 4, rng);
  CHECK(names_of(packed) ==
        std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"});
  const double bound = std::sqrt(6.0 / (4 * 32));
  CHECK(amax(abs(packed.in_proj_weight)).item() <= bound);
  CHECK(amax(abs(packed.in_proj_weight)).item() > 0.99 * bound);
  check_close(packed.in_proj_bias, zeros({96}), 0);
  check_close(packed.out_proj.bias, zeros({32}), 0);
  const nn::MultiHeadAttention apart(32, 4, rng, {.key_size = 3, .bias = false});
  CHECK(names_of(apart) ==
        std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"});
  CHECK(apart.k_proj_weight.shape() == Shape{32, 3});
  CHECK(amax(abs(apart.k_proj_weight)).item() <= std::sqrt(6.0 / 35));
  nn::MultiHeadAttention queries_apart(32, 4, rng, {.query_size = 5});
  CHECK(queries_apart.q_proj_weight.shape() == Shape{32, 5});
  CHECK(queries_apart.k_proj_weight.shape() == Shape{32, 32});
  CHECK(queries_apart(zeros({2, 3, 5}), zeros({2, 4, 32}), zeros({2, 4, 32})).shape() == Shape{2, 3, 32});
  check_refused(
      [&] {
        queries_apart(zeros({2, 3, 32}));
      },
      "[MultiHeadAttention] the queries' last axis must be query_size; got (2,3,32) and 5");
}

TEST_CASE("MultiHeadAttention's outputs, weights and all gradients are PyTorch's from the same weights") {
  for (const Json& c : reference()["cases"]) {
    CAPTURE(c["name"]);
    Rng rng;
    const std::size_t size = c["size"], batch = c["batch"], queries = c["queries"], keys = c["keys"];
    const std::size_t key_size = c["key_size"], value_size = c["value_size"];
    nn::MultiHeadAttention attention(size, c["heads"], rng,
                                     {.key_size = key_size, .value_size = value_size, .bias = c["bias"]});
    CHECK(names_of(attention) == c["parameters"].get<std::vector<std::string>>());
    fill_parameters(attention);
    std::vector<Tensor> inputs{fill({batch, queries, size}, 10)};
    if (!c["self"]) {
      inputs.push_back(fill({batch, keys, key_size ? key_size : size}, 20));
      inputs.push_back(fill({batch, keys, value_size ? value_size : size}, 30));
    }
    AttentionOptions options{.causal = c["causal"]};
    if (!c["lengths"].is_null()) {
      options.mask = valid_lengths(Index(Shape{batch}, c["lengths"].get<std::vector<std::int64_t>>()), keys);
    }
    std::vector<Tensor> leaves;
    for (Tensor& x : inputs) leaves.push_back(x.set_requires_grad());
    for (const Parameter& parameter : attention.parameters()) leaves.push_back(parameter);
    REQUIRE(leaves.size() == c["gradients"].size());
    for (bool keep : {false, true}) {
      attention.keep_weights(keep);
      Tape tape;
      const Tensor y =
          inputs.size() == 1 ? attention(inputs[0], options) : attention(inputs[0], inputs[1], inputs[2], options);
      check_reference(y.value(), c["output"]);
      const std::vector<Tensor> gradients = tape.gradient(y, leaves, {.seed = Tensor(fill(y.shape(), 5))});
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        CAPTURE(i);
        check_reference(gradients[i].value(), c["gradients"][i]);
      }
    }
    check_reference(attention.attention_weights().value(), c["weights"]);
  }
}

TEST_CASE("MultiHeadAttention trained from PyTorch's weights and data loses as PyTorch's does") {
  const Json& training = reference()["training"];
  const double tolerance = kDouble ? 1e-9 : 1e-3;
  Rng rng;
  nn::MultiHeadAttention attention(8, 2, rng);
  fill_parameters(attention);
  const Tensor x = fill({4, 6, 8}, 3);
  const Tensor target = concat({slice(x, 1, 5, 6), slice(x, 1, 0, 5)}, 1);
  const AttentionOptions options{.mask = valid_lengths(Index{6, 3, 5, 4}, 6)};
  optim::SGD sgd(attention.parameters(), {.learning_rate = 0.2});
  REQUIRE(training["losses"].size() == 50);
  for (const Json& expected : training["losses"]) {
    Tape tape;
    const Tensor loss = mse_loss(attention(x, options), target);
    REQUIRE(loss.item() == Approx(expected.get<double>()).epsilon(tolerance));
    sgd.zero_grad();
    tape.backward(loss);
    sgd.step();
  }
  std::size_t i = 0;
  for (const Parameter& parameter : attention.parameters()) {
    const Json& after = training["after"][i++];
    REQUIRE(after.size() == parameter.size());
    for (std::size_t j = 0; j < after.size(); ++j) {
      CHECK(parameter.value().data()[j] == Approx(after[j].get<double>()).epsilon(tolerance).margin(tolerance));
    }
  }
}

TEST_CASE("An item with every key masked gives out_proj's bias, and finite gradients for every parameter") {
  Rng rng(11);
  nn::MultiHeadAttention attention(6, 2, rng);
  attention.out_proj.bias.mutable_value() = rng.normal({6});
  const Tensor x = rng.normal({2, 4, 6});
  for (bool keep : {false, true}) {
    attention.keep_weights(keep);
    attention.zero_grad();
    Tape tape;
    const Tensor y = attention(x, {.mask = valid_lengths(Index{0, 3}, 4)});
    check_close(slice(y, 0, 0, 1), broadcast_to(attention.out_proj.bias, {1, 4, 6}), 0);
    CHECK(all_finite(y));
    tape.backward(sum(square(slice(y, 0, 1, 2))));
    for (const Parameter& parameter : attention.parameters()) CHECK(all_finite(Tensor(parameter.grad())));
  }
  // The same alone: nothing to learn from but the bias.
  attention.zero_grad();
  Tape tape;
  tape.backward(sum(attention(x, {.mask = valid_lengths(Index{0, 0}, 4)})));
  check_close(attention.in_proj_weight.grad(), zeros({18, 6}), 0);
  check_close(attention.out_proj.weight.grad(), zeros({6, 6}), 0);
  check_close(attention.out_proj.bias.grad(), full({6}, 8), 0);
}

TEST_CASE("A lower triangle of ones is no mask: a module takes booleans, or numbers under another name") {
  static_assert(!std::is_invocable_v<nn::DotProductAttention, Tensor, Tensor, Tensor, Tensor>);
  static_assert(!std::is_invocable_v<nn::AdditiveAttention, Tensor, Tensor, Tensor, Tensor>);
  static_assert(!std::is_invocable_v<nn::MultiHeadAttention, Tensor, Tensor, Tensor, Tensor>);
  Rng rng(12);
  nn::MultiHeadAttention attention(6, 2, rng);
  const Tensor x = rng.normal({2, 8, 6});
  const Mask allowed = causal(8);
  const Tensor numbers = where(allowed, Tensor(0), Tensor(-kInf));
  const Tensor by_bools = attention(x, {.mask = allowed});
  CHECK(same_bits(attention(x, {.additive_mask = numbers}), by_bools));
  CHECK(same_bits(attention(x, {.causal = true}), by_bools));
  CHECK(!same_bits(attention(x), by_bools));
  // Three axes are (B,Q,K) for both kinds.
  const Mask each = valid_lengths(Index{{1, 2, 3, 4, 5, 6, 7, 8}, {8, 8, 8, 8, 1, 1, 1, 1}}, 8);
  CHECK(same_bits(attention(x, {.mask = each}), attention(x, {.mask = every_head(each)})));
  CHECK(
      same_bits(attention(x, {.additive_mask = where(each, Tensor(0), Tensor(-kInf))}), attention(x, {.mask = each})));
}

TEST_CASE("What lies at a masked key has no influence on attention's output") {
  Rng rng(13);
  nn::MultiHeadAttention attention(6, 2, rng);
  const Tensor q = rng.normal({2, 3, 6});
  Array k = rng.normal({2, 5, 6});
  const AttentionOptions options{.mask = valid_lengths(Index{2, 4}, 5)};
  const Tensor before = attention(q, k, k, options);
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t j = b == 0 ? 2 : 4; j < 5; ++j) {
      for (std::size_t c = 0; c < 6; ++c) k(b, j, c) = Real(1e6);
    }
  }
  CHECK(same_bits(attention(q, k, k, options), before));
}

TEST_CASE("Causal attention sees no later input, in training and in evaluation, alone and with padding masks") {
  Rng rng(14);
  for (std::size_t length : {1, 5, 70}) {
    nn::MultiHeadAttention attention(6, 3, rng);
    const Tensor x = rng.normal({2, length, 6});
    const auto padded = [&] {
      return valid_lengths(Index{static_cast<std::int64_t>(length), static_cast<std::int64_t>(length / 2)}, length);
    };
    for (bool training : {true, false}) {
      for (bool keep : {false, true}) {
        attention.train(training);
        attention.keep_weights(keep);
        CAPTURE(length, training, keep);
        CHECK(nn::check_causality([&](const Tensor& t) { return attention(t, causal_options()); }, x).message == "");
        CHECK(nn::check_causality([&](const Tensor& t) { return attention(t, causal_options(padded())); }, x).message ==
              "");
        CHECK(
            nn::check_causality([&](const Tensor& t) { return attention(t, {.mask = causal(length) && padded()}); }, x)
                .message == "");
      }
    }
  }
}

TEST_CASE("check_causality finds a leak, and says which position leaked where") {
  Rng rng(15);
  nn::MultiHeadAttention attention(4, 2, rng);
  const Tensor x = rng.normal({2, 5, 4});
  const nn::CausalityReport open = nn::check_causality([&](const Tensor& t) { return attention(t); }, x);
  CHECK(!open);
  CHECK(open.changed == 1);
  CHECK(open.leaked == 0);
  CHECK(open.message == "changing the input of item 0 at position 1 changed the output of item 0 at position 0");
  // Causal in training only, as where the mask is built in one mode.
  const auto forgets_in_eval = [&](const Tensor& t) {
    return attention.training() ? attention(t, {.causal = true}) : attention(t);
  };
  CHECK(nn::check_causality(forgets_in_eval, x));
  attention.eval();
  CHECK(!nn::check_causality(forgets_in_eval, x));
  // One position, one element, by a little.
  const nn::CausalityReport small = nn::check_causality(
      [](const Tensor& t) {
        Array y = t.value();
        y(1, 2, 3) += y(1, 4, 0) * Real(1e-3);
        return Tensor(y);
      },
      x);
  CHECK((!small.causal && small.item == 1 && small.changed == 4 && small.leaked == 2));
  const nn::CausalityReport across = nn::check_causality([](const Tensor& t) { return t - mean(t, 0, true); }, x);
  CHECK(across.message == "changing the input of item 0 at position 0 changed the output of item 1 at position 0");
  CHECK(nn::check_causality([](const Tensor& t) { return cumsum(t, 1); }, x));
  CHECK(!nn::check_causality([](const Tensor& t) { return cumsum(t, 1, true); }, x));
}

TEST_CASE("check_causality takes tokens, and refuses what it can't judge") {
  Rng rng(16);
  const Tensor table = rng.normal({7, 4});
  nn::MultiHeadAttention attention(4, 2, rng);
  bool is_causal = true;
  const auto model = [&](const Index& tokens) {
    const Tensor x = reshape(index_select(table, 0, Index(Shape{tokens.size()}, tokens)),
                             Shape{tokens.shape()[0], tokens.shape()[1], 4});
    return attention(x, {.mask = padding(tokens, 0), .causal = is_causal});
  };
  const Index tokens{{1, 6, 3, 6, 2}, {4, 5, 6, 0, 0}};
  CHECK(nn::check_causality(model, tokens, 7).message == "");
  is_causal = false;
  CHECK(!nn::check_causality(model, tokens, 7));
  check_refused([&] { nn::check_causality(model, tokens, 1); }, "[check_causality] tokens must be (B,T)");
  const Tensor x = rng.normal({2, 3, 4});
  check_refused([&] { nn::check_causality([&](const Tensor& t) { return dropout(t, 0.5, rng); }, x); },
                "f must give the same output for the same input: is dropout active?");
  check_refused([&] { nn::check_causality([&](const Tensor& t) { return mean(t, 1); }, x); },
                "the output must have the input's batch and length");
  check_refused(
      [&] {
        nn::check_causality([&](const Tensor& t) { return t; }, Tensor{1, 2});
      },
      "the input must be (B,T,...)");
}

TEST_CASE("Attention modules refuse what does not fit, in one line") {
  Rng rng(17);
  check_refused([&] { nn::MultiHeadAttention(6, 4, rng); },
                "[MultiHeadAttention] the size must be divisible by the number of heads; got 6 and 4");
  check_refused([&] { nn::MultiHeadAttention(6, 0, rng); }, "the size must be divisible by the number of heads");
  check_refused([&] { nn::MultiHeadAttention(6, 2, rng, {.dropout = 2}); }, "[Dropout] p must be from 0 to 1");
  nn::MultiHeadAttention attention(6, 2, rng);
  const Tensor x = rng.normal({2, 3, 6});
  check_refused([&] { attention(zeros({3, 6})); }, "[MultiHeadAttention] queries, keys and values must be (B,T,width)");
  check_refused([&] { attention(x, zeros({1, 3, 6}), zeros({1, 3, 6})); }, "must have the same batch");
  check_refused([&] { attention(x, x, zeros({2, 4, 6})); }, "there must be a value for each key");
  check_refused([&] { attention(zeros({2, 3, 5})); }, "[MultiHeadAttention] the values' last axis must be value_size");
  check_refused([&] { attention(x, {.heads = 2}); }, "the number of heads is the module's own");
  check_refused([&] { attention(x, {.mask = causal(4)}); }, "the mask must broadcast to (B,H,Q,K)");
  nn::DotProductAttention dot(0, rng);
  check_refused([&] { dot(x, zeros({2, 3, 5}), x); }, "q and k must be equally wide");
  check_refused([&] { dot(x, x, x, Mask(Shape{3, 3, 3})); }, "the mask must broadcast");
  nn::AdditiveAttention additive(6, 6, 2, rng);
  check_refused([&] { additive(x, x, x, Mask(Shape{3, 3, 3})); }, "the mask must broadcast");
}

TEST_CASE("check_causality refuses NaN, which no change changes") {
  const Tensor x(Array(Shape{1, 2, 2}, std::numeric_limits<Real>::quiet_NaN()));
  check_refused([&] { nn::check_causality([](const Tensor& t) { return t; }, x); }, "the input must not be NaN");
}
