#include "nn/bert.hpp"

#include "tests/check.hpp"

using namespace tapegrad;

namespace {

const nn::BertConfig kSmall = {
    .vocabulary = 7, .positions = 5, .types = 1, .width = 4, .layers = 1, .heads = 2, .hidden = 6};

}  // namespace

TEST_CASE("Bert's parameters have the names and shapes of BertModel", "[bert]") {
  Rng rng(0);
  const nn::Bert bert(nn::BertConfig{}, rng);
  CHECK(bert.parameter_count() == 22'713'216);
  const auto named = bert.named_parameters();
  const auto has = [&](const std::string& name, const Shape& shape) {
    INFO(name);
    const auto found = std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == name; });
    REQUIRE(found != named.end());
    CHECK(found->second.shape() == shape);
  };
  CHECK(named.size() == 5 + 16 * 6 + 2);
  has("embeddings.word_embeddings.weight", {30522, 384});
  has("embeddings.LayerNorm.bias", {384});
  has("encoder.layer.5.attention.self.query.weight", {384, 384});
  has("encoder.layer.0.attention.output.LayerNorm.weight", {384});
  has("encoder.layer.0.intermediate.dense.weight", {1536, 384});
  has("encoder.layer.3.output.dense.weight", {384, 1536});
  has("pooler.dense.weight", {384, 384});
}

TEST_CASE("Padding has no influence on Bert, and mean_embedding has right gradients", "[bert]") {
  Rng rng(1);
  nn::Bert bert(kSmall, rng);
  const Index tokens{{1, 2, 3, 4}, {5, 6, 0, 0}}, lengths{4, 2};
  const Tensor both = nn::mean_embedding(bert(tokens, lengths), lengths);
  const Index other{{1, 2, 3, 4}, {5, 6, 3, 1}};
  check_close(nn::mean_embedding(bert(other, lengths), lengths), both);
  const Tensor alone = nn::mean_embedding(bert(Index{{5, 6}}, Index{2}), Index{2});
  check_close(slice(both, 0, 1, 2), alone, kDouble ? 1e-12 : 1e-5);

  const Tensor weights = rng.normal({2, 4});
  check_gradients(
      [&](const auto& xs) {
        return weights * nn::mean_embedding(xs[0], Index{3, 1});
      },
      {rng.normal({2, 3, 4})});
}

TEST_CASE("Bert refuses what does not fit", "[bert]") {
  Rng rng(0);
  nn::Bert bert(kSmall, rng);
  check_refused([&] { bert(Index{1, 2}, Index{2}); }, "[Bert] the tokens must be (B,T); got (2)");
  check_refused([&] { bert(Index{{1, 2, 3, 4, 5, 6}}, Index{6}); }, "as there are positions; got 6 and 5");
  check_refused([&] { bert(Index{{1, 2}}, Index{2, 2}); }, "a length for each text; got (2)");
  check_refused([&] { bert(Index{{1, 7}}, Index{2}); }, "[embedding]");
  check_refused([&] { bert(Index{{1, 2}}, Index{3}); }, "[valid_lengths]");
  check_refused([&] { nn::mean_embedding(ones({1, 2, 3}), Index{0}); }, "a length must be from 1 to T; got 0 and 2");
  check_refused([&] { nn::mean_embedding(ones({1, 2, 3}), Index{3}); }, "a length must be from 1 to T; got 3 and 2");
  check_refused([&] { nn::mean_embedding(ones({2, 3}), Index{2, 2}); }, "for each of (B,T,E)");
  const auto make = [&](auto change) {
    nn::BertConfig config = kSmall;
    change(config);
    nn::Bert refused(config, rng);
  };
  check_refused([&] { make([](auto& c) { c.heads = 3; }); }, "the heads must divide the width; got 3 and 4");
  check_refused([&] { make([](auto& c) { c.heads = 0; }); }, "the heads must divide the width");
  check_refused([&] { make([](auto& c) { c.layers = 0; }); }, "there must be a layer");
  check_refused([&] { make([](auto& c) { c.hidden = 0; }); }, "the sizes must be positive");
}
