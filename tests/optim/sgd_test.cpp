#include "optim/sgd.hpp"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "autograd/ops.hpp"
#include "tests/catch.hpp"
#include "tests/optim/give_gradient.hpp"

using namespace tapegrad;
using Catch::Matchers::ContainsSubstring;
using optim::SGD;

TEST_CASE("SGD steps as PyTorch's does, for every setting") {
  std::ifstream file(TAPEGRAD_SOURCE_DIR "/tests/reference/sgd.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  REQUIRE(cases.size() == 7);
  const double tolerance = sizeof(Real) == 8 ? 1e-14 : 1e-6;
  for (const auto& c : cases) {
    const auto& settings = c["settings"];
    CAPTURE(settings.dump());
    const auto to_tensor = [](const nlohmann::json& numbers) {
      Array array = empty_array({2, 3});
      for (std::size_t i = 0; i < 6; ++i) array.data()[i] = numbers[i].get<Real>();
      return Tensor(array);
    };
    Parameter p(to_tensor(c["start"]));
    Parameter other(Tensor{1});  // has a gradient when p has none
    SGD sgd({p, other}, {.learning_rate = settings["lr"],
                         .momentum = settings.value("momentum", 0.0),
                         .dampening = settings.value("dampening", 0.0),
                         .weight_decay = settings.value("weight_decay", 0.0),
                         .nesterov = settings.value("nesterov", false)});
    for (std::size_t step = 0; step < 5; ++step) {
      sgd.zero_grad();
      give_gradient(other, 1);
      if (!c["gradients"][step].is_null()) give_gradient(p, to_tensor(c["gradients"][step]));
      sgd.step();
      for (std::size_t i = 0; i < 6; ++i) {
        REQUIRE(p.value().data()[i] == Approx(c["values"][step][i].get<double>()).epsilon(0).margin(tolerance));
      }
    }
  }
}

TEST_CASE("SGD refuses a step without gradients, and changes nothing") {
  Parameter p(Tensor{1, 2});
  SGD sgd({p}, {.learning_rate = 0.5});
  CHECK_THROWS_WITH(sgd.step(), "[SGD] no parameter has a gradient (was a Tape open?)");
  give_gradient(p, Tensor{1, 1});
  sgd.zero_grad();
  CHECK(!p.has_grad());
  CHECK_THROWS_AS(sgd.step(), Error);
  CHECK(p.value().data()[0] == 1);

  give_gradient(p, Tensor{1, 1});
  p.mutable_grad() = Array(Shape{3}, Real(1));
  CHECK_THROWS_WITH(sgd.step(), ContainsSubstring("(3) and (2)"));
}

TEST_CASE("SGD skips a parameter without a gradient") {
  Parameter used(Tensor{1});
  Parameter unused(Tensor{1});
  SGD sgd({used, unused}, {.learning_rate = 0.5, .weight_decay = 0.1});
  give_gradient(used, Tensor{1});
  sgd.step();
  CHECK(used.value().data()[0] == Approx(0.45));
  CHECK(unused.value().data()[0] == 1);
}

TEST_CASE("SGD reads and sets the learning rate") {
  Parameter p(Tensor{1});
  SGD sgd({p}, {.learning_rate = 0.5});
  CHECK(sgd.learning_rate() == 0.5);
  sgd.set_learning_rate(0.25);
  CHECK(sgd.learning_rate() == 0.25);
  give_gradient(p, Tensor{1});
  sgd.step();
  CHECK(p.value().data()[0] == Real(0.75));
  CHECK_THROWS_WITH(sgd.set_learning_rate(-1), ContainsSubstring("[SGD] learning_rate must be at least 0"));
  CHECK(sgd.learning_rate() == 0.25);
}

TEST_CASE("SGD hides no infinity and no NaN") {
  const Real infinity = std::numeric_limits<Real>::infinity();
  for (double momentum : {0.0, 0.9}) {
    Parameter p(Tensor{1, 1, 1});
    SGD sgd({p}, {.learning_rate = 0.5, .momentum = momentum});
    give_gradient(p, Tensor{1, 1, 1});
    p.mutable_grad() = Tensor{infinity, std::numeric_limits<Real>::quiet_NaN(), 1}.value();
    sgd.step();
    CHECK(p.value().data()[0] == -infinity);
    CHECK(std::isnan(p.value().data()[1]));
    CHECK(p.value().data()[2] == Real(0.5));
  }
}

TEST_CASE("SGD refuses settings that make no sense") {
  const Parameter p(Tensor{1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(SGD({p}, {.learning_rate = -0.1}), Error);
  CHECK_THROWS_AS(SGD({p}, {.learning_rate = nan}), Error);
  CHECK_THROWS_AS(SGD({p}, {.learning_rate = INFINITY}), Error);
  CHECK_THROWS_AS(SGD({p}, {.momentum = -0.5}), Error);
  CHECK_THROWS_AS(SGD({p}, {.momentum = 0.5, .dampening = nan}), Error);
  CHECK_THROWS_AS(SGD({p}, {.weight_decay = -1}), Error);
  CHECK_THROWS_WITH(SGD({p}, {.nesterov = true}), ContainsSubstring("nesterov"));
  CHECK_THROWS_AS(SGD({p}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), Error);
  CHECK_THROWS_AS(SGD(std::vector<Parameter>{}), Error);
  CHECK_THROWS_AS(SGD({p, p}), Error);
  CHECK_THROWS_AS(SGD({p, Parameter()}), Error);
}

TEST_CASE("A warm SGD step takes no memory, and marks the parameter as changed") {
  Parameter p(Tensor(Array(Shape{1000}, Real(1))));
  SGD sgd({p}, {.learning_rate = 0.1, .momentum = 0.9});
  give_gradient(p, 1);
  sgd.step();
  const std::size_t held = pooled_bytes();
  const std::uint32_t version = p.version();
  for (int i = 0; i < 100; ++i) sgd.step();
  CHECK(pooled_bytes() == held);
  CHECK(p.version() == version + 100);
}
