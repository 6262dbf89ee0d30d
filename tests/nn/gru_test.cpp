#include "nn/gru.hpp"

#include "tests/nn/sequence_reference.hpp"

using namespace tapegrad;

TEST_CASE("GRU gives PyTorch's outputs, last state and gradients") {
  for (const auto& answers : sequence_reference::read("gru")) {
    Rng rng;
    nn::GRU gru(answers["inputs"], answers["hidden"], rng);
    sequence_reference::check(answers, gru, [&](const auto& xs) {
      const auto [outputs, state] = gru(xs[0], xs.size() > 1 ? xs[1] : Tensor());
      return std::vector<Tensor>{outputs, state};
    });
  }
}

TEST_CASE("GRU's gradients of first and second order") {
  Rng rng(1);
  for (const auto& [batch, steps] : {std::pair{2, 3}, {1, 1}, {0, 2}}) {
    CAPTURE(batch, steps);
    const auto b = static_cast<std::size_t>(batch);
    const Tensor x(rng.normal({b, static_cast<std::size_t>(steps), 3}));
    const Tensor state(rng.normal({b, 2}));
    nn::GRU gru(3, 2, rng);
    check_gradients(
        [&](const auto& xs) {  // of everything that the outputs depend on
          static_cast<Tensor&>(gru.weight_ih_l0) = xs[2];
          static_cast<Tensor&>(gru.weight_hh_l0) = xs[3];
          static_cast<Tensor&>(gru.bias_ih_l0) = xs[4];
          static_cast<Tensor&>(gru.bias_hh_l0) = xs[5];
          const auto [outputs, last] = gru(xs[0], xs[1]);
          return concat({outputs, 2 * unsqueeze(last, 1)}, 1);
        },
        {x, state, gru.weight_ih_l0.detach(), gru.weight_hh_l0.detach(), gru.bias_ih_l0.detach(),
         gru.bias_hh_l0.detach()});
  }
}

TEST_CASE("GRU goes on from a state, and no output sees later inputs") {
  Rng rng(2);
  nn::GRU gru(3, 4, rng);
  const Tensor x(rng.normal({2, 6, 3}));
  const auto whole = gru(x);
  const auto head = gru(slice(x, 1, 0, 4));
  const auto tail = gru(slice(x, 1, 4, 6), head.state);
  check_close(concat({head.outputs, tail.outputs}, 1), whole.outputs, 10 * kTight);
  check_close(tail.state, whole.state, 10 * kTight);
  check_close(slice(whole.outputs, 1, 5, 6), unsqueeze(whole.state, 1), 0);
  check_close(gru(x, zeros({2, 4})).outputs, whole.outputs, 0);
  CHECK(gru(zeros({0, 2, 3})).outputs.shape() == Shape{0, 2, 4});
}

TEST_CASE("GRU has PyTorch's names and spread") {
  Rng rng(3);
  nn::GRU gru(5, 16, rng);
  std::string names;
  for (const auto& [name, parameter] : gru.named_parameters()) {
    names += name + to_text(parameter.shape()) + " ";
    CHECK(amax(abs(parameter)).item() <= 0.25);
    CHECK(amax(abs(parameter)).item() > 0.23);
  }
  CHECK(names == "weight_ih_l0(48,5) weight_hh_l0(48,16) bias_ih_l0(48) bias_hh_l0(48) ");
}

TEST_CASE("GRU refuses what does not fit") {
  Rng rng;
  check_refused([&] { nn::GRU(0, 2, rng); }, "[GRU] inputs and hidden");
  nn::GRU gru(3, 2, rng);
  check_refused([&] { gru(zeros({2, 3})); }, "[GRU] x must be (batch,steps,inputs)");
  check_refused([&] { gru(zeros({2, 4, 2})); }, "[GRU] x must be");
  check_refused([&] { gru(zeros({2, 0, 3})); }, "[GRU] x must be");
  check_refused([&] { gru(zeros({2, 4, 3}), zeros({1, 2, 2})); }, "[GRU] the state must be (batch,hidden)");
}
