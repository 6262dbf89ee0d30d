#include <fstream>
#include <nlohmann/json.hpp>

#include "nn/loss.hpp"
#include "nn/nadaraya_watson.hpp"
#include "optim/sgd.hpp"
#include "tests/catch.hpp"

using namespace tapegrad;

namespace {

Tensor to_tensor(const nlohmann::json& numbers) {
  Array array = empty_array({numbers.size()});
  for (std::size_t i = 0; i < numbers.size(); ++i) array.data()[i] = numbers[i].get<Real>();
  return array;
}

}  // namespace

TEST_CASE("Kernel regression trained from PyTorch's data and weights loses as PyTorch's does") {
  std::ifstream file(TAPEGRAD_SOURCE_DIR "/tests/reference/nw_training.json");
  const nlohmann::json reference = nlohmann::json::parse(file);
  const double tolerance = sizeof(Real) == 8 ? 1e-9 : 1e-4;
  const Tensor x = to_tensor(reference["x"]);
  const Tensor y = to_tensor(reference["y"]);
  const Tensor keys = nn::leave_one_out(x);
  const Tensor values = nn::leave_one_out(y);
  const nn::MSELoss squared_errors{Reduction::none};
  for (const auto& [name, run] : reference["runs"].items()) {
    CAPTURE(name);
    Rng rng;
    nn::NadarayaWatson net(run["w"].size(), rng);
    net.w.mutable_value() = to_tensor(run["w"]).value();
    optim::SGD sgd(net.parameters(), {.learning_rate = reference["learning rate"]});
    REQUIRE(run["losses"].size() == 100);
    for (const auto& expected : run["losses"]) {
      Tape tape;
      const Tensor loss = sum(squared_errors(net(x, keys, values), y));
      REQUIRE(loss.item() == Approx(expected.get<double>()).epsilon(tolerance));
      sgd.zero_grad();
      tape.backward(loss);
      sgd.step();
    }
    for (std::size_t i = 0; i < run["w after"].size(); ++i) {
      CHECK(net.w.value()(i) == Approx(run["w after"][i].get<double>()).epsilon(10 * tolerance));
    }
  }
}
