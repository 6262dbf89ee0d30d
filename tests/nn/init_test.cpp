#include "nn/init.hpp"

#include "nn/embedding.hpp"
#include "nn/layer_norm.hpp"
#include "nn/linear.hpp"
#include "tests/check.hpp"

using namespace tapegrad;
namespace init = nn::init;

namespace {

struct Spread {
  double mean, deviation, largest;
};
Spread spread(const Parameter& p) {
  const auto n = static_cast<double>(p.size());
  Spread s{0, 0, 0};
  for (Real v : p.value()) s.mean += v / n, s.largest = std::max(s.largest, std::abs(static_cast<double>(v)));
  for (Real v : p.value()) s.deviation += (v - s.mean) * (v - s.mean) / n;
  s.deviation = std::sqrt(s.deviation);
  return s;
}

/// Uniform within the bound and filling it; deviation as that of a uniform distribution.
void check_uniform(const Parameter& p, double bound) {
  const Spread s = spread(p);
  CAPTURE(bound, s.mean, s.deviation, s.largest);
  CHECK(s.largest <= bound);
  CHECK(s.largest > 0.999 * bound);
  CHECK(std::abs(s.mean) < 0.01 * bound);
  CHECK(std::abs(s.deviation / (bound / std::sqrt(3.0)) - 1) < 0.01);
}
void check_normal(const Parameter& p, double deviation) {
  const Spread s = spread(p);
  CAPTURE(deviation, s.mean, s.deviation, s.largest);
  CHECK(std::abs(s.mean) < 0.01 * deviation);
  CHECK(std::abs(s.deviation / deviation - 1) < 0.01);
  CHECK(s.largest > 3.5 * deviation);
}

}  // namespace

TEST_CASE("fans count the further axes for both sides") {
  CHECK(init::fans({5, 3}).in == 3);
  CHECK(init::fans({5, 3}).out == 5);
  CHECK(init::fans({5, 3, 2, 4}).in == 24);
  CHECK(init::fans({5, 3, 2, 4}).out == 40);
}

TEST_CASE("gains are those that PyTorch documents") {
  using N = init::Nonlinearity;
  CHECK(init::gain(N::linear) == 1);
  CHECK(init::gain(N::sigmoid) == 1);
  CHECK(init::gain(N::tanh) == 5.0 / 3);
  CHECK(init::gain(N::relu) == std::sqrt(2.0));
  CHECK(init::gain(N::leaky_relu) == std::sqrt(2 / 1.0001));
  CHECK(init::gain(N::leaky_relu, 1) == 1);
  CHECK(init::gain(N::selu) == 0.75);
}

TEST_CASE("each initialisation has its distribution") {
  Rng rng(1);
  Parameter w(zeros({200, 100, 5}));  // fans 500 and 1000
  init::uniform(w, rng, -0.25, 0.25);
  check_uniform(w, 0.25);
  init::normal(w, rng, 0, 0.02);
  check_normal(w, 0.02);
  init::xavier_uniform(w, rng);
  check_uniform(w, std::sqrt(6.0 / 1500));
  init::xavier_uniform(w, rng, init::gain(init::Nonlinearity::tanh));
  check_uniform(w, 5.0 / 3 * std::sqrt(6.0 / 1500));
  init::xavier_normal(w, rng, 2);
  check_normal(w, 2 * std::sqrt(2.0 / 1500));
  init::kaiming_uniform(w, rng);
  check_uniform(w, std::sqrt(6.0 / 500));
  init::kaiming_uniform(w, rng, 1, init::Fan::out);
  check_uniform(w, std::sqrt(3.0 / 1000));
  init::kaiming_normal(w, rng);
  check_normal(w, std::sqrt(2.0 / 500));
  init::kaiming_normal(w, rng, init::gain(init::Nonlinearity::leaky_relu, 0.2), init::Fan::out);
  check_normal(w, std::sqrt(2 / 1.04 / 1000));
  init::constant(w, 3);
  CHECK(w.value() == Array(w.shape(), Real(3)));
}

TEST_CASE("initialisation happens in place, from the Rng alone, and says that the value changed") {
  Rng rng(2);
  nn::Linear linear(3, 4, rng);
  for (auto& [name, parameter] : linear.named_parameters()) {
    Rng same(7);
    const std::uint32_t before = parameter.version();
    init::normal(parameter, same);
    CHECK(parameter.version() > before);
  }
  check_close(linear.weight.value(), Rng(7).normal({4, 3}));
  check_close(linear.bias.value(), Rng(7).normal({4}));
  CHECK(linear.weight.requires_grad());
  check_refused([&] { init::xavier_uniform(linear.bias, rng); },
                "[init] a weight must have at least two axes; got (4)");
  check_refused([&] { init::kaiming_normal(linear.bias, rng); }, "[init] a weight must have at least two axes");
}

TEST_CASE("apply visits every module, children before their parents") {
  struct Block : nn::Module {
    explicit Block(Rng& rng) : first(child<nn::Linear>("first", 2, 3, rng)), norm(child<nn::LayerNorm>("norm", 3)) {}
    nn::Linear first;
    nn::LayerNorm norm;
  };
  struct Net : nn::Module {
    explicit Net(Rng& rng) : block(child<Block>("block", rng)), last(child<nn::Linear>("last", 3, 1, rng)) {}
    Block block;
    nn::Linear last;
  };
  Rng rng(3);
  Net net(rng);
  std::vector<nn::Module*> visited;
  net.apply([&](nn::Module& module) {
    visited.push_back(&module);
    if (auto* linear = dynamic_cast<nn::Linear*>(&module)) init::constant(linear->bias, 7);
  });
  CHECK(visited == std::vector<nn::Module*>{&net.block.first, &net.block.norm, &net.block, &net.last, &net});
  check_close(net.last.bias, Tensor{7});
  check_close(net.block.first.bias, Tensor{7, 7, 7});
  check_close(net.block.norm.bias, zeros({3}));
}

TEST_CASE("LayerNorm and RMSNorm start as PyTorch's, with its names") {
  Rng rng(4);
  const nn::LayerNorm norm(Shape{2, 3}, Real(1e-3));
  CHECK(norm.named_parameters()[0].first == "weight");
  CHECK(norm.named_parameters()[1].first == "bias");
  check_close(norm.weight, ones({2, 3}));
  check_close(norm.bias, zeros({2, 3}));
  const Tensor x(rng.normal({4, 2, 3}));
  check_close(norm(x), layer_norm(x, {2, 3}, {}, {}, Real(1e-3)));
  CHECK(nn::LayerNorm(3, Real(1e-5), false).parameters().size() == 1);
  check_close(nn::LayerNorm(3)(x), layer_norm(x, {3}));
  const nn::RMSNorm rms(3);
  CHECK(rms.named_parameters()[0].first == "weight");
  check_close(rms(x), rms_norm(x, ones({3})));
  check_refused([&] { nn::LayerNorm(2)(x); }, "[layer_norm] the normalised shape");
  check_refused([] { nn::LayerNorm(Shape{}); }, "[LayerNorm] the normalised shape must have an axis");
}

TEST_CASE("Embedding starts standard normal with a padding row of zeros, which training leaves alone") {
  Rng rng(5);
  const nn::Embedding wide(1000, 40, rng);
  check_normal(wide.weight, 1);
  CHECK(wide.named_parameters()[0].first == "weight");
  nn::Embedding padded(4, 2, rng, 0);
  check_close(slice(padded.weight, 0, 0, 1), zeros({1, 2}));
  Tape tape;
  tape.backward(sum(padded({0, 1, 1, 3})));
  CHECK(padded.weight.grad() == Tensor({{0, 0}, {2, 2}, {0, 0}, {1, 1}}).value());
  check_refused([&] { padded({4}); }, "[embedding] an index");
  check_refused([&] { padded({-1}); }, "[embedding] an index");
  check_refused([&] { nn::Embedding(4, 2, rng, 4); }, "[Embedding] the padding must be one of the rows");
  check_refused([&] { nn::Embedding(0, 2, rng); }, "[Embedding] the sizes must be positive");
}
