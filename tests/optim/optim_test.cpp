// Rates, groups and what every optimiser keeps; RMSprop; whole trainings against PyTorch's.

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "optim/adam.hpp"
#include "optim/clip.hpp"
#include "optim/rmsprop.hpp"
#include "optim/schedule.hpp"
#include "optim/sgd.hpp"
#include "tests/check.hpp"
#include "tests/optim/give_gradient.hpp"

using namespace tapegrad;
namespace schedule = optim::schedule;
using nlohmann::json;
using optim::RMSprop;

namespace {

const json& reference() {
  static const json numbers = [] {
    std::ifstream file(TAPEGRAD_SOURCE_DIR "/tests/reference/optim.json");
    return json::parse(file);
  }();
  return numbers;
}

Array to_array(const json& numbers, const Shape& shape) {
  Array array = empty_array(shape);
  REQUIRE(array.size() == numbers.size());
  for (std::size_t i = 0; i < array.size(); ++i) array.data()[i] = numbers[i].get<Real>();
  return array;
}

std::unique_ptr<optim::Optimizer> make(const std::string& kind, std::vector<optim::Group> groups,
                                       const json& settings) {
  const double rate = settings["lr"], decay = settings.value("weight_decay", 0.0);
  const double momentum = settings.value("momentum", 0.0);
  if (kind == "SGD") {
    return std::make_unique<optim::SGD>(
        groups, optim::SGDOptions{.learning_rate = rate, .momentum = momentum, .weight_decay = decay});
  }
  if (kind == "Adam") {
    return std::make_unique<optim::Adam>(groups, optim::AdamOptions{.learning_rate = rate, .weight_decay = decay});
  }
  if (kind == "AdamW") {
    return std::make_unique<optim::AdamW>(groups, optim::AdamOptions{.learning_rate = rate, .weight_decay = decay});
  }
  REQUIRE(kind == "RMSprop");
  return std::make_unique<RMSprop>(
      groups, optim::RMSpropOptions{.learning_rate = rate, .momentum = momentum, .weight_decay = decay});
}

/// The small net of reference/optim.py, one weight in two places.
struct Net {
  explicit Net(const json& t)
      : x(to_array(t["x"], {8, 3})),
        y(to_array(t["y"], {8, 3})),
        w(to_array(t["start"]["w"], {3, 3})),
        b1(to_array(t["start"]["b1"], {3})),
        b2(to_array(t["start"]["b2"], {3})) {}
  Tensor x, y;
  Parameter w, b1, b2;
  std::vector<optim::Group> groups(const json& settings) const {
    return {{{w}}, {{b1, b2}, settings["lr"].get<double>() / 4, 0.0}};
  }
  double backward() {
    Tape tape;
    const Tensor loss = mean(square(matmul(tanh(matmul(x, w) + b1), w) + b2 - y));
    tape.backward(loss);
    return loss.item();
  }
};

optim::Schedule training_schedule() {
  return schedule::sequence({{schedule::linear(0.25, 1, 3), 3}, {schedule::cosine(8), 8}});
}

constexpr double kReplay = kDouble ? 1e-10 : 2e-4;

}  // namespace

TEST_CASE("RMSprop steps as PyTorch's does, for every setting") {
  const json& cases = reference()["rmsprop"];
  REQUIRE(cases.size() == 6);
  for (const json& c : cases) {
    const json& settings = c["settings"];
    CAPTURE(settings.dump());
    optim::RMSpropOptions options;  // defaults are compared too
    options.learning_rate = settings.value("lr", options.learning_rate);
    options.alpha = settings.value("alpha", options.alpha);
    options.eps = settings.value("eps", options.eps);
    options.momentum = settings.value("momentum", options.momentum);
    options.weight_decay = settings.value("weight_decay", options.weight_decay);
    options.centered = settings.value("centered", options.centered);
    Parameter p(to_array(c["start"], {2, 3}));
    Parameter other(Tensor{1});  // has a gradient when p has none
    RMSprop optimizer({p, other}, options);
    for (std::size_t step = 0; step < 10; ++step) {
      optimizer.zero_grad();
      give_gradient(other, 1);
      if (!c["gradients"][step].is_null()) give_gradient(p, to_array(c["gradients"][step], {2, 3}));
      optimizer.step();
      check_close(p.value(), to_array(c["values"][step], {2, 3}), kDouble ? 1e-13 : 1e-5);
    }
  }
}

TEST_CASE("RMSprop refuses settings that make no sense") {
  const Parameter p(Tensor{1});
  check_refused([&] { RMSprop({p}, {.alpha = 1}); }, "[RMSprop] alpha must be in [0,1); got 1");
  check_refused([&] { RMSprop({p}, {.alpha = -0.1}); }, "alpha");
  check_refused([&] { RMSprop({p}, {.eps = -1}); }, "eps");
  check_refused([&] { RMSprop({p}, {.momentum = NAN}); }, "momentum");
  check_refused([&] { RMSprop({p}, {.learning_rate = INFINITY}); }, "learning_rate");
  check_refused([&] { RMSprop({p, p}); }, "a parameter must be listed once; got it at positions 0 and 1");
}

TEST_CASE("A centered RMSprop whose variance rounds below 0 gives no NaN") {
  Parameter p(Tensor{1});
  RMSprop optimizer({p}, {.alpha = 0.5, .eps = 1, .centered = true});
  for (int i = 0; i < 200; ++i) {
    give_gradient(p, Tensor{Real(0.1) + Real(0.7)});
    optimizer.step();
    REQUIRE(std::isfinite(p.item()));
  }
}

TEST_CASE("Training with groups, a schedule, clipping and a tied weight goes as PyTorch's") {
  const json& t = reference()["training"];
  REQUIRE(t["runs"].size() == 4);
  for (const json& run : t["runs"]) {
    const std::string kind = run["kind"];
    CAPTURE(kind);
    Net net(t);
    const auto optimizer = make(kind, net.groups(run["settings"]), run["settings"]);
    const optim::Schedule schedule = training_schedule();
    for (std::size_t step = 0; step < 10; ++step) {
      optimizer->scale_learning_rates(schedule(static_cast<std::int64_t>(step)));
      CHECK(optimizer->learning_rate(0) == Approx(run["rates"][step][0].get<double>()).epsilon(1e-13).margin(1e-16));
      CHECK(optimizer->learning_rate(1) == Approx(run["rates"][step][1].get<double>()).epsilon(1e-13).margin(1e-16));
      CHECK(net.backward() == Approx(run["losses"][step].get<double>()).epsilon(kReplay));
      CHECK(optim::clip_grad_norm(optimizer->parameters(), 1) ==
            Approx(run["norms"][step].get<double>()).epsilon(kDouble ? 1e-10 : 1e-3));
      optimizer->step();
      optimizer->zero_grad();
    }
    check_close(net.w, to_array(run["end"]["w"], {3, 3}), kReplay);
    check_close(net.b1, to_array(run["end"]["b1"], {3}), kReplay);
    check_close(net.b2, to_array(run["end"]["b2"], {3}), kReplay);
  }
}

TEST_CASE("An optimiser's state goes on bit for bit") {
  const json& t = reference()["training"];
  for (const json& run : t["runs"]) {
    const json& settings = run["settings"];
    CAPTURE(run["kind"].get<std::string>());
    Net net(t);
    const auto optimizer = make(run["kind"], net.groups(settings), settings);
    const optim::Schedule schedule = training_schedule();
    State state;
    std::unique_ptr<Net> other;
    std::unique_ptr<optim::Optimizer> resumed;
    for (std::int64_t step = 0; step < 10; ++step) {
      if (step == 4) {
        state = optimizer->state();
        other = std::make_unique<Net>(t);
        other->w.mutable_value() = net.w.value();
        other->b1.mutable_value() = net.b1.value();
        other->b2.mutable_value() = net.b2.value();
        json changed = settings;  // the state's rates count, not these
        changed["lr"] = 7.0;
        resumed = make(run["kind"], other->groups(changed), changed);
        resumed->load_state(state);
        CHECK(resumed->learning_rate(1) == optimizer->learning_rate(1));
        CHECK(resumed->weight_decay(0) == optimizer->weight_decay(0));
        CHECK(resumed->state().texts == state.texts);
      }
      optimizer->scale_learning_rates(schedule(step));
      const double loss = net.backward();
      optimizer->step();
      optimizer->zero_grad();
      if (!resumed) continue;
      resumed->scale_learning_rates(schedule(step));
      CHECK(other->backward() == loss);
      resumed->step();
      resumed->zero_grad();
    }
    CHECK(other->w.value() == net.w.value());
    CHECK(other->b2.value() == net.b2.value());
  }
}

TEST_CASE("An optimiser refuses a state that is not its own, and changes nothing") {
  Parameter p(Tensor{1, 2}), q(Tensor{3});
  optim::Adam adam({p, q}, {.learning_rate = 0.5});
  give_gradient(p, 1);
  give_gradient(q, 1);
  adam.step();
  const State good = adam.state();
  REQUIRE(good.arrays.size() == 4);
  CHECK(good.arrays[2].first == "1.exp_avg");
  CHECK(good.texts.at("1.step") == "1");

  check_refused(
      [&] {
        optim::AdamW({p, q}).load_state(good);
      },
      "[AdamW] the state must be of the same kind of optimiser; got \"Adam\"");
  check_refused([&] { adam.load_state({}); }, "got none");
  check_refused([&] { optim::Adam({p}).load_state(good); }, "as many parameters; got 2 and 1");
  check_refused([&] { optim::Adam(std::vector<optim::Group>{{{p}}, {{q}}}).load_state(good); }, "as many groups");

  State bad = good;
  bad.arrays[0].first = "stranger";
  bad.arrays[3].second = Array(Shape{2, 2}, Real(1));
  bad.texts["group.0.learning_rate"] = "0.25";
  check_refused([&] { adam.load_state(bad); },
                "[Adam] names and shapes must be those expected; got missing \"0.exp_avg\"; unexpected \"stranger\"; "
                "wrongly shaped \"1.exp_avg_sq\" (2,2) for (1)");
  for (const char* text : {"", "-1", "one", "inf", "0x1", "1e999", "1 ", "nan"}) {
    bad = good;
    bad.texts["group.0.learning_rate"] = text;
    check_refused([&] { adam.load_state(bad); }, "");
    bad = good;
    bad.texts["0.step"] = text;
    check_refused([&] { adam.load_state(bad); }, "[State] a text must be a count: \"0.step\"");
  }
  bad = good;
  bad.texts["0.step"] = "18446744073709551615";
  check_refused([&] { adam.load_state(bad); }, "[Adam] the number of steps must be below 2^63");
  bad = good;
  bad.arrays[3].second(0) = Real(-1);
  check_refused([&] { adam.load_state(bad); }, "[Adam] means of squares must not be negative; got \"1.exp_avg_sq\"");
  if (!kDouble) {  // a rate that Real can't hold
    check_refused([&] { adam.set_learning_rate(1e39); }, "[Adam] learning_rate must be at least 0 and finite");
  }
  bad = good;
  bad.texts.erase("group.0.weight_decay");
  check_refused([&] { adam.load_state(bad); }, "[State] a text is missing; got \"group.0.weight_decay\"");
  CHECK(adam.state().texts == good.texts);
  CHECK(adam.state().arrays == good.arrays);
}

TEST_CASE("Groups have rates of their own, and those of the options where left out") {
  Parameter p(Tensor{1}), q(Tensor{1});
  optim::SGD sgd({{{p}}, {{q}, 0.25, 0.0}}, {.learning_rate = 0.5, .weight_decay = 0.125});
  CHECK(sgd.group_count() == 2);
  CHECK(sgd.weight_decay(0) == 0.125);
  CHECK(sgd.weight_decay(1) == 0);
  sgd.scale_learning_rates(0.5);
  sgd.scale_learning_rates(0.5);  // the factor of the first rates, not of the last
  CHECK(sgd.learning_rate(0) == 0.25);
  CHECK(sgd.learning_rate(1) == 0.125);
  sgd.set_learning_rate(1, 1);
  give_gradient(p, 1);
  give_gradient(q, 1);
  sgd.step();
  CHECK(p.item() == Real(1 - 0.25 * 1.125));
  CHECK(q.item() == 0);
  sgd.set_learning_rate(0.75);
  CHECK(sgd.learning_rate(0) == 0.75);
  CHECK(sgd.learning_rate(1) == 0.75);

  check_refused([&] { sgd.learning_rate(2); }, "[SGD] there must be a group of that number; got 2");
  check_refused([&] { sgd.set_learning_rate(1, 2); }, "group");
  check_refused([&] { sgd.scale_learning_rates(-1); }, "[SGD] the learning rates' factor must be at least 0");
  check_refused([&] { sgd.scale_learning_rates(NAN); }, "factor");
  check_refused(
      [&] {
        optim::SGD({{.parameters = {p}}, {.parameters = {p}}});
      },
      "a parameter must be listed once");  // tied: updated once
  check_refused([&] { optim::SGD({{{p}}, {{q}, -1.0}}); }, "learning_rate must be at least 0");
  check_refused([&] { optim::SGD({{{p}}, {{q}, {}, NAN}}); }, "weight_decay must be at least 0");
  check_refused([&] { optim::SGD(std::vector<optim::Group>{{}}); }, "there must be a parameter");
}

TEST_CASE("Schedules give PyTorch's rates") {
  const std::map<std::string, optim::Schedule> schedules{
      {"step", schedule::step(3, 0.1)},
      {"multistep", schedule::multistep({2, 3, 7}, 0.3)},
      {"exponential", schedule::exponential(0.9)},
      {"cosine", schedule::cosine(12, 0.1)},
      {"linear", schedule::linear(0.25, 0.75, 8)},
      {"warmup", schedule::warmup(5)},
      {"transformer", schedule::transformer(16, 5)},
      {"user", [](std::int64_t step) { return 1 / (1 + static_cast<double>(step)); }},
      {"sequence",
       schedule::sequence(
           {{schedule::linear(0.25, 1, 3), 4}, {schedule::cosine(9), 5}, {[](std::int64_t) { return 0.1; }, 1}})},
      {"product", schedule::product({schedule::linear(0.25, 1, 3), schedule::exponential(0.8)})},
  };
  const json& rates = reference()["schedules"];
  REQUIRE(rates.size() == schedules.size());
  for (const auto& [name, schedule] : schedules) {
    for (std::int64_t step = 0; step < 12; ++step) {
      CAPTURE(name, step);
      CHECK(0.5 * schedule(step) == Approx(rates[name][static_cast<std::size_t>(step)].get<double>()).epsilon(1e-13));
    }
  }
}

TEST_CASE("Schedules start at step 0, and asking changes nothing") {
  const optim::Schedule steps = schedule::step(3, 0.1), cosine = schedule::cosine(4);
  const double right[] = {1, 1, 1, .1, .1, .1, .01, .01};
  const double right_cosine[] = {1, .853553, .5, .146447, 0, 0};
  for (int asked = 0; asked < 3; ++asked) {
    for (int t = 0; t < 8; ++t) CHECK(steps(t) == Approx(right[t]).epsilon(1e-14));
    for (int t = 0; t < 6; ++t) CHECK(cosine(t) == Approx(right_cosine[t]).margin(1e-6));
  }
  Parameter p(Tensor{1});
  optim::SGD sgd({p}, {.learning_rate = 1});
  for (int t = 0; t < 8; ++t) {
    sgd.scale_learning_rates(steps(t));
    for (int asked = 0; asked < 3; ++asked) CHECK(sgd.learning_rate() == Approx(right[t]).epsilon(1e-14));
    give_gradient(p, 1);
    const Real before = p.item();
    sgd.step();
    CHECK(before - p.item() == Approx(right[t]).epsilon(1e-5));
  }
}

TEST_CASE("Schedules hold at both ends, and refuse what makes no sense") {
  CHECK(schedule::cosine(4, 0.25)(1000) == 0.25);
  CHECK(schedule::linear(0, 1, 4)(std::int64_t{1} << 60) == 1);
  CHECK(schedule::warmup(1)(0) == 1);
  CHECK(schedule::warmup(4)(0) == 0.25);
  CHECK(schedule::warmup(4)(3) == 1);
  CHECK(schedule::product({})(3) == 1);
  check_refused([] { schedule::step(0, 0.1); }, "[schedule] size must be above 0; got 0");
  check_refused([] { schedule::step(2, NAN); }, "gamma");
  check_refused([] { schedule::multistep({3, 2}, 0.1); }, "milestones must rise");
  check_refused([] { schedule::exponential(-1); }, "gamma");
  check_refused([] { schedule::cosine(-1); }, "steps");
  check_refused([] { schedule::linear(0, INFINITY, 3); }, "last");
  check_refused([] { schedule::warmup(0); }, "steps");
  check_refused([] { schedule::transformer(0, 5); }, "width");
  check_refused([] { schedule::sequence({}); }, "part");
  check_refused([] { schedule::sequence({{nullptr, 3}}); }, "schedule");
  check_refused([] { schedule::product({nullptr}); }, "schedule");
  check_refused([] { schedule::cosine(4)(-1); }, "[schedule] the step must be at least 0; got -1");
  check_refused([] { schedule::product({})(-1); }, "step");
  check_refused([] { schedule::sequence({{schedule::warmup(1), 1}})(-1); }, "step");
}
