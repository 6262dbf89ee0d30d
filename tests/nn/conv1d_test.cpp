#include "nn/conv1d.hpp"

#include "tests/nn/sequence_reference.hpp"

using namespace tapegrad;

TEST_CASE("Conv1d gives PyTorch's outputs and gradients") {
  for (const auto& answers : sequence_reference::read("conv1d")) {
    Rng rng;
    nn::Conv1d conv(answers["channels"], answers["filters"], answers["kernel"], rng,
                    {answers["stride"], answers["padding"], answers["bias"]});
    sequence_reference::check(answers, conv, [&](const auto& xs) { return std::vector<Tensor>{conv(xs[0])}; });
  }
}

TEST_CASE("Conv1d has PyTorch's names and spread") {
  Rng rng(3);
  nn::Conv1d conv(4, 50, 9, rng);
  const auto named = conv.named_parameters();
  REQUIRE(named.size() == 2);
  CHECK(named[0].first == "weight");
  CHECK(named[1].first == "bias");
  CHECK(conv.weight.shape() == Shape{50, 4, 9});
  CHECK(conv.bias.shape() == Shape{50});
  const double bound = 1 / std::sqrt(36.0);
  CHECK(amax(abs(conv.weight)).item() <= bound);
  CHECK(amax(abs(conv.weight)).item() > 0.98 * bound);
  CHECK(std::sqrt(var(conv.weight).item()) == Approx(bound / std::sqrt(3.0)).epsilon(0.05));
  CHECK(nn::Conv1d(2, 3, 1, rng, {.bias = false}).parameter_count() == 6);
}

TEST_CASE("Conv1d refuses what makes no layer") {
  Rng rng;
  check_refused([&] { nn::Conv1d(0, 1, 1, rng); }, "[Conv1d] channels, outputs and kernel");
  check_refused(
      [&] { nn::Conv1d(1, 1, 0, rng); },
      "[Conv1d] channels, outputs and kernel must be at least 1; got 1 channels and 1 outputs and a kernel of 0");
  check_refused([&] { nn::Conv1d(1, 1, 1, rng, {.stride = 0}); }, "[Conv1d] the stride");
  check_refused([&] { nn::Conv1d(1, 1, 1, rng, {.padding = -1}); }, "[Conv1d] the stride");
  nn::Conv1d conv(2, 3, 3, rng);
  check_refused([&] { conv(zeros({1, 3, 5})); }, "[conv1d] x and the weight");
}
