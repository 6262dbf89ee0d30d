#include "optim/adam.hpp"

#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "autograd/ops.hpp"
#include "tests/allocations.hpp"
#include "tests/catch.hpp"
#include "tests/optim/give_gradient.hpp"

using namespace tapegrad;
using Catch::Matchers::ContainsSubstring;
using optim::Adam;
using optim::AdamW;

TEST_CASE("Adam and AdamW step as PyTorch's do, for every setting") {
  std::ifstream file(TAPEGRAD_SOURCE_DIR "/tests/reference/adam.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  REQUIRE(cases.size() == 8);
  const double tolerance = sizeof(Real) == 8 ? 1e-14 : 2e-6;
  for (const auto& c : cases) {
    const auto& settings = c["settings"];
    CAPTURE(c["name"].get<std::string>(), settings.dump());
    const auto to_tensor = [](const nlohmann::json& numbers) {
      Array array = empty_array({2, 3});
      for (std::size_t i = 0; i < 6; ++i) array.data()[i] = numbers[i].get<Real>();
      return Tensor(array);
    };
    optim::AdamOptions options;  // defaults are compared too
    if (settings.contains("lr")) options.learning_rate = settings["lr"];
    if (settings.contains("betas")) options.beta1 = settings["betas"][0];
    if (settings.contains("betas")) options.beta2 = settings["betas"][1];
    if (settings.contains("eps")) options.eps = settings["eps"];
    if (settings.contains("weight_decay")) options.weight_decay = settings["weight_decay"].get<double>();
    Parameter p(to_tensor(c["start"]));
    Parameter other(Tensor{1});  // has a gradient when p has none
    const std::vector<Parameter> both{p, other};
    const std::unique_ptr<Adam> adam =
        c["name"] == "Adam" ? std::make_unique<Adam>(both, options) : std::make_unique<AdamW>(both, options);
    for (std::size_t step = 0; step < 5; ++step) {
      adam->zero_grad();
      give_gradient(other, 1);
      if (!c["gradients"][step].is_null()) give_gradient(p, to_tensor(c["gradients"][step]));
      adam->step();
      for (std::size_t i = 0; i < 6; ++i) {
        REQUIRE(p.value().data()[i] == Approx(c["values"][step][i].get<double>()).epsilon(0).margin(tolerance));
      }
    }
  }
}

TEST_CASE("Adam adds eps after the bias correction") {  // before it, the first step from 1e-8 leads to 0.99693
  const double right[2][3] = {{0.95, 0.90, 0.85}, {0.900000001, 0.800000002, 0.700000003}};
  for (int large = 0; large < 2; ++large) {
    Parameter p(Tensor{1});
    Adam adam({p}, {.learning_rate = 0.1, .eps = 1e-8});
    for (double value : right[large]) {
      give_gradient(p, Tensor{large ? Real(1) : Real(1e-8)});
      adam.step();
      CHECK(p.value().data()[0] == Approx(value).epsilon(0).margin(sizeof(Real) == 8 ? 1e-12 : 1e-6));
    }
  }
}

TEST_CASE("AdamW decays weights apart from the gradient") {
  Parameter p(Tensor{2});
  AdamW adam({p}, {.learning_rate = 0.1, .weight_decay = 0.5});
  give_gradient(p, Tensor{0});
  adam.step();
  CHECK(p.value().data()[0] == Approx(1.9));  // where Adam comes too, by its whole rate; then to 1.8
  adam.step();
  CHECK(p.value().data()[0] == Approx(1.805));
}

TEST_CASE("Adam skips a parameter without a gradient, and refuses a step without any") {
  Parameter used(Tensor{1});
  Parameter unused(Tensor{1});
  AdamW adam({used, unused}, {.learning_rate = 0.5, .weight_decay = 0.1});
  CHECK_THROWS_WITH(adam.step(), "[AdamW] no parameter has a gradient (was a Tape open?)");
  give_gradient(used, Tensor{1});
  adam.step();
  CHECK(used.value().data()[0] == Approx(0.45));
  CHECK(unused.value().data()[0] == 1);
}

TEST_CASE("Adam reads and sets the learning rate") {
  Parameter p(Tensor{1});
  Adam adam({p}, {.learning_rate = 0.5});
  adam.set_learning_rate(0.25);
  give_gradient(p, Tensor{1});
  adam.step();
  CHECK(p.value().data()[0] == Approx(0.75));
  CHECK_THROWS_WITH(adam.set_learning_rate(-1), ContainsSubstring("[Adam] learning_rate must be at least 0"));
}

TEST_CASE("Adam hides no NaN") {
  Parameter p(Tensor{1, 1});
  Adam adam({p}, {.learning_rate = 0.5});
  give_gradient(p, Tensor{1, 1});
  p.mutable_grad() = Tensor{std::numeric_limits<Real>::quiet_NaN(), 1}.value();
  adam.step();
  CHECK(std::isnan(p.value().data()[0]));
  CHECK(p.value().data()[1] == Approx(0.5));
}

TEST_CASE("Adam refuses settings that make no sense") {
  const Parameter p(Tensor{1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(Adam({p}, {.learning_rate = -0.1}), Error);
  CHECK_THROWS_WITH(Adam({p}, {.beta1 = 1}), "[Adam] beta1 must be in [0,1); got 1");
  CHECK_THROWS_AS(Adam({p}, {.beta1 = -0.1}), Error);
  CHECK_THROWS_AS(Adam({p}, {.beta1 = nan}), Error);
  CHECK_THROWS_AS(Adam({p}, {.beta2 = 1}), Error);
  CHECK_THROWS_AS(Adam({p}, {.beta2 = nan}), Error);
  CHECK_THROWS_AS(Adam({p}, {.eps = -1e-8}), Error);
  CHECK_THROWS_AS(Adam({p}, {.eps = INFINITY}), Error);
  CHECK_THROWS_WITH(AdamW({p}, {.weight_decay = -1}), ContainsSubstring("[AdamW] weight_decay must be at least 0"));
  CHECK_THROWS_AS(Adam({p, p}), Error);
}

TEST_CASE("A warm Adam step takes no memory, and marks the parameter as changed") {
  Parameter p(Tensor(Array(Shape{1000}, Real(1))));
  Adam adam({p}, {.learning_rate = 0.1});
  give_gradient(p, 1);
  adam.step();
  const std::size_t held = pooled_bytes(), requests = allocations::count();
  const std::uint32_t version = p.version();
  for (int i = 0; i < 100; ++i) adam.step();
  CHECK(pooled_bytes() == held);
  CHECK(allocations::count() == requests);
  CHECK(p.version() == version + 100);
}

TEST_CASE("Adam refuses a parameter whose shape changed, and changes nothing") {
  Parameter p(Tensor{1, 2}), q(Tensor{3});
  Adam adam({q, p});
  give_gradient(p, Tensor{1, 1});
  give_gradient(q, Tensor{1});
  adam.step();
  const Real before = q.value().data()[0];
  p.mutable_value() = Array(Shape{2000}, Real(1));
  p.zero_grad();
  {
    Tape tape;
    tape.backward(sum(square(p)));
  }
  CHECK_THROWS_WITH(adam.step(),
                    "[Adam] a parameter's shape must stay as it was at the first step; got (2000) and (2)");
  CHECK(q.value().data()[0] == before);
  CHECK(adam.state().texts.at("0.step") == "1");
}
