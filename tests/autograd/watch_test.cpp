#include "autograd/watch.hpp"

#include <set>
#include <sstream>
#include <thread>

#include "autograd/ops.hpp"
#include "nn/transformer.hpp"
#include "tests/catch.hpp"
#include "tests/check.hpp"

using namespace tapegrad;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string printed(const auto& shown, auto... options) {
  std::ostringstream out;
  shown.print(out, options...);
  return out.str();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// The names of a step, joined by dots.
std::string path(const StepView& step) {
  std::string text;
  for (const StepView::Name& name : step.names) text.append(text.empty() ? "" : ".").append(name.name);
  return text;
}

std::string refusal(auto f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

/// One pass of a small Transformer, to be looked at.
Tensor transformer_loss(nn::Transformer& net) {
  const Tensor source = ones({1, 3, 4}), target = ones({1, 2, 4});
  return sum(square(net(source, target)));
}
nn::TransformerConfig small() {
  return {.width = 4, .heads = 2, .hidden = 8, .encoder_layers = 2, .decoder_layers = 1, .dropout = 0};
}

}  // namespace

TEST_CASE("names nest, end, and outlive a backward pass while they are open", "[watch]") {
  const Parameter x(Tensor{1, 2});
  TapeView view;
  Tape tape;
  NamedScope outer("outer");
  Tensor y = x * Real(2);
  {
    NamedScope inner("inner");
    y = exp(y);
  }
  y = sum(y);
  REQUIRE(view.steps().size() == 4);
  CHECK(path(view.steps()[1]) == "outer");
  CHECK(path(view.steps()[2]) == "outer.inner");
  CHECK(path(view.steps()[3]) == "outer");
  tape.backward(y);
  CHECK(tape.names().size() == 1);
  y = sum(x);
  CHECK(path(view.steps()[1]) == "outer");
  CHECK(view.steps().size() == 2);
}

TEST_CASE("a name on a closed tape, or on none, does nothing", "[watch]") {
  NamedScope nowhere("nowhere");
  auto tape = std::make_unique<Tape>();
  NamedScope name("name");
  NamedScope none(nullptr);
  CHECK(tape->names().size() == 1);
  tape.reset();
  Tape next;
  CHECK(next.names().empty());
}

TEST_CASE("a view has the values and gradients of every step, after the pass too", "[watch]") {
  Parameter x(Tensor{1, 2});
  TapeView view;
  {
    Tape tape;
    const Tensor y = sum(x * x);
    CHECK(!view.steps()[0].gradient.defined());
    tape.backward(y);
  }
  x.mutable_value()(0) = 7;
  REQUIRE(view.steps().size() == 3);
  const StepView& leaf = view.steps()[0];
  const StepView& product = view.steps()[1];
  CHECK(leaf.leaf);
  check_close(leaf.value, Tensor{1, 2});
  check_close(leaf.gradient, Tensor{2, 4});
  check_close(product.value, Tensor{1, 4});
  check_close(product.gradient, Tensor{1, 1});
  CHECK(product.operands.size() == 2);
  CHECK(product.operands[0].source == 0);
  CHECK(product.operands[0].saved == 2 * sizeof(Real));
  const std::string table = printed(view);
  CAPTURE(table);
  CHECK_THAT(table, ContainsSubstring("value") && ContainsSubstring("gradient") && ContainsSubstring("2, 4"));
  CHECK(table.find(" in\n") == std::string::npos);  // nothing has a name
  CHECK_THAT(view.to_dot(), ContainsSubstring("#1 mul\\n(2)\\n1, 4\\ngradient 1, 1"));
}

TEST_CASE("a view sums long arrays up, and counts what is not finite", "[watch]") {
  TapeView view;
  Tape tape;
  const Parameter x(Tensor{-1, 2, 3, 4, 0, 4, kInf});
  const Tensor y = x + Real(1);
  CHECK_THAT(printed(view), ContainsSubstring("-1 .. 4, mean 2, 1 not finite"));
}

TEST_CASE("modules name their steps as parameters are named", "[watch]") {
  Rng rng(0);
  nn::Transformer net(small(), rng);
  TapeView view;
  Tape tape;
  const Tensor loss = transformer_loss(net);
  std::set<std::string> seen;
  for (const StepView& step : view.steps()) seen.insert(path(step));
  for (const auto& [name, parameter] : net.named_parameters()) {
    CAPTURE(name);
    CHECK(seen.contains(name.substr(0, name.rfind('.'))));
  }
}

TEST_CASE("a Transformer's tape is small when it is folded", "[watch]") {
  Rng rng(0);
  nn::Transformer net(small(), rng);
  Tape tape;
  const Tensor loss = transformer_loss(net);
  const std::string folded = printed(tape, ShowOptions{.depth = 1});
  CAPTURE(folded);
  CHECK(count(folded, "\n") < 14);
  CHECK_THAT(folded, ContainsSubstring("layers.0: ") && ContainsSubstring("layers.1: ") && ContainsSubstring("norm: "));
  CHECK(count(printed(tape, ShowOptions{.depth = 0}), "\n") == 6);  // header, encoder, decoder, square, sum, total
  const auto last_line = [](const std::string& text) { return text.substr(text.rfind('\n', text.size() - 2)); };
  CHECK(last_line(folded) == last_line(printed(tape)));

  const std::string dot = tape.to_dot({.depth = 0});
  CAPTURE(dot);
  CHECK(count(dot, "shape=box3d") == 2);
  CHECK(count(dot, " -> ") == 3);  // encoder to decoder to square to sum
  const std::string whole = tape.to_dot();
  CHECK(count(whole, "{") == count(whole, "}"));
  CHECK(count(whole, "label=\"self_attn\"") == 3);
  CHECK(count(whole, "shape=box,") + count(whole, "shape=ellipse") == tape.size());
}

TEST_CASE("a module that is called twice is folded to two rows", "[watch]") {
  struct Net : nn::Module {
    explicit Net(Rng& rng) : map(child<nn::Linear>("map", 2, 2, rng)) {}
    nn::Linear map;
  };
  Rng rng(0);
  Net net(rng);
  Tape tape;
  const Tensor y = net.map(net.map(ones({1, 2})));
  CHECK(count(printed(tape, ShowOptions{.depth = 0}), "map: ") == 2);
}

TEST_CASE("what a recorded backward pass adds is named", "[watch]") {
  const Parameter x(Tensor{1, 2});
  Tape tape;
  const Tensor dx = tape.gradient(sum(square(x)), {x}, {.create_graph = true})[0];
  CHECK_THAT(printed(tape, ShowOptions{.depth = 0}), ContainsSubstring("backward: "));
}

TEST_CASE("the first value that is not finite is named, and the tape stays usable", "[watch]") {
  Parameter x(Tensor{{1, 0}, {2, 3}});
  CheckFinite check;
  Tape tape;
  NamedScope outer("outer");
  const Tensor scaled = x * Tensor{1, 2};
  std::string message;
  {
    NamedScope inner("inner");
    message = refusal([&] { log(scaled); });
  }
  CHECK(message ==
        "[check_finite] step 2 'log' in outer.inner makes -inf at element 1; got y (2,2) of x0 #1 mul (2,2)");
  tape.backward(sum(scaled));
  check_close(Array(x.grad()), Tensor{{1, 2}, {1, 2}});
}

TEST_CASE("a leaf that is not finite is named where it is first used", "[watch]") {
  const Parameter x(Tensor{1, kNaN});
  CheckFinite check;
  Tape tape;
  CHECK(refusal([&] { exp(x); }) == "[check_finite] step 0 'leaf' holds nan at element 1; got y (2)");
}

TEST_CASE("the first gradient that is not finite is named, and no .grad is touched", "[watch]") {
  Parameter x(Tensor{4, 0});
  CheckFinite check;
  Tape tape;
  const Tensor y = sum(sqrt(x));
  CHECK(refusal([&] { tape.backward(y); }) ==
        "[check_finite] step 1 'sqrt' makes the gradient of x0 inf at element 1; got y (2) of x0 #0 leaf (2)");
  CHECK(!x.has_grad());
  CHECK(tape.size() == 0);
  CHECK(refusal([&] {
          const Tensor z = sum(square(x));
          tape.backward(z, {.seed = Tensor(kInf)});
        }) == "[check_finite] step 2 'sum' gets the gradient inf at element 0; got y () of x0 #1 square (2)");
}

TEST_CASE("without a watcher nothing is checked, and a watcher's end ends it", "[watch]") {
  const Parameter x(Tensor{1, 0});
  Tape tape;
  { CheckFinite check; }
  CHECK_NOTHROW(log(x));
  CheckFinite check;  // from here on
  CHECK_THROWS_AS(log(x), Error);
}

TEST_CASE("a tape may outlive its watcher", "[watch]") {
  std::unique_ptr<Tape> tape;
  const Parameter x(Tensor{1, 0});
  {
    CheckFinite check;
    tape = std::make_unique<Tape>();
  }
  CHECK_NOTHROW(log(x));
}

TEST_CASE("several watchers see the same tape", "[watch]") {
  const Parameter x(Tensor{1, 2});
  TapeView view;
  Profile profile;
  CheckFinite check;
  Tape tape;
  tape.backward(sum(exp(x)));
  CHECK(view.steps().size() == 3);
  CHECK(profile.rows().size() == 2);
}

TEST_CASE("a leaf is told of once, when its gradient is whole", "[watch]") {
  // What training on several ranks relies on: the sum over them can begin before the pass has ended.
  struct Leaves : Watcher {
    std::vector<std::pair<Tensor, Tensor>> seen;
    void before_rule(const Tape&, const Step& step, const Array& dy) override {
      if (step.leaf() != nullptr) seen.emplace_back(*step.leaf(), Tensor(Array(dy)));
    }
  } leaves;
  const Parameter first(Tensor{1, 2}), twice(Tensor{3, 4}), last(Tensor{5, 6}), unused(Tensor{7, 8});
  {
    Tape tape;
    const Tensor early = exp(first) * twice;
    tape.backward(sum(early * last * twice));
  }
  REQUIRE(leaves.seen.size() == 3);
  CHECK(leaves.seen[0].first.same_as(last));
  CHECK(leaves.seen[1].first.same_as(twice));
  CHECK(leaves.seen[2].first.same_as(first));
  for (const auto& [leaf, gradient] : leaves.seen) CHECK(gradient.value() == leaf.grad());
}

TEST_CASE("a profile counts calls, bytes and time by op over many tapes", "[watch]") {
  Parameter x(ones({100, 100}));
  Profile profile;
  for (int step = 0; step < 3; ++step) {
    Tape tape;
    tape.backward(sum(exp(exp(x * Real(0.1)))));
  }
  const Profile::Row& row = profile.rows().at("exp");
  CHECK(row.calls == 6);
  CHECK(row.output == 6 * 10000 * sizeof(Real));
  CHECK(row.saved == 6 * 10000 * sizeof(Real));
  CHECK(row.forward > 0);
  CHECK(row.backward > 0);
  const std::string table = printed(profile);
  CAPTURE(table);
  CHECK(count(table, "\n") == 2 + profile.rows().size());
  CHECK_THAT(table, ContainsSubstring("\nall") && ContainsSubstring("100.0 %"));
  CHECK(!profile.rows().contains("leaf"));
}

TEST_CASE("a profile leaves out what happens between tapes", "[watch]") {
  const Parameter x(Tensor{1, 2});
  Profile profile;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  Tape tape;
  exp(x);
  CHECK(profile.rows().at("exp").forward < 0.4);
}
