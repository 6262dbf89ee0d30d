#include "autograd/tape.hpp"

#include <pthread.h>

#include <chrono>
#include <memory>
#include <thread>

#include "autograd/ops.hpp"
#include "tests/check.hpp"

using namespace tapegrad;
using Catch::Matchers::ContainsSubstring;

namespace {

using Reals = std::vector<Real>;
Reals elements(const Tensor& x) { return {x.value().storage().begin(), x.value().storage().end()}; }
Reals grad_of(const Tensor& x) { return elements(Tensor(x.grad())); }

/// f on a thread of its own, with a stack of that many bytes.
template <class F>
void on_small_stack(std::size_t bytes, F f) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  pthread_t thread;
  const auto call = [](void* function) -> void* {
    (*static_cast<F*>(function))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, call, &f) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

const auto kNotThisTape = ContainsSubstring("recorded on a tape that is consumed, closed or not the innermost");

}  // namespace

// ---- recording and backward ---------------------------------------------------------------------------------------

TEST_CASE("without a tape, ops only compute", "[tape]") {
  const Parameter w(Tensor{1, 2});
  CHECK(Tape::open() == nullptr);
  const Tensor y = w * 3;
  CHECK(elements(y) == Reals{3, 6});
  CHECK_FALSE(y.requires_grad());
  Tape tape;
  CHECK(Tape::open() == &tape);
  CHECK_THROWS_WITH(tape.backward(sum(y)),
                    ContainsSubstring("[backward] the output depends on nothing that requires grad") &&
                        ContainsSubstring("was a Tape open"));
}

TEST_CASE("ops on constants are not recorded", "[tape]") {
  Tape tape;
  const Tensor y = exp(Tensor{1, 2}) + 1;
  CHECK(tape.size() == 0);
  CHECK_FALSE(y.requires_grad());
}

TEST_CASE("backward leaves the gradient at the leaves, and adds on", "[tape]") {
  const Parameter w(Tensor{1, 2, 3});
  const Tensor c{4, 5, 6};
  for (int pass = 1; pass <= 3; ++pass) {
    Tape tape;
    tape.backward(sum(w * c));
    CHECK(grad_of(w) == Reals{Real(4 * pass), Real(5 * pass), Real(6 * pass)});
  }
  CHECK_FALSE(c.has_grad());
}

TEST_CASE("one tape serves one recording after another", "[tape]") {
  const Parameter w(Tensor{3});
  Tape tape;
  for (int pass = 1; pass <= 3; ++pass) {
    CHECK(tape.size() == 0);
    tape.backward(w * w);
    CHECK(w.grad()(0) == 6 * pass);
  }
}

TEST_CASE("an interior value that is used twice counts once for each use", "[tape][faults]") {
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor y = 3 * x;
  tape.backward(y * y + y);
  CHECK(x.grad()() == 39);
}

TEST_CASE("a leaf is an output too", "[tape]") {
  const Parameter x(Tensor{2, 3});
  Tape tape;
  tape.backward(x, {.seed = Tensor{5, 7}});
  CHECK(grad_of(x) == Reals{5, 7});
  CHECK(elements(tape.gradient(x, {x}, {.seed = Tensor{1, 2}})[0]) == Reals{1, 2});
}

TEST_CASE("steps that the output does not depend on are left alone", "[tape]") {
  const Parameter x(Tensor(2)), other(Tensor(5));
  Tape tape;
  const Tensor early = exp(other);
  const Tensor y = x * x;
  const Tensor late = log(y) * other;
  tape.backward(y);
  CHECK(x.grad()() == 4);
  CHECK_FALSE(other.has_grad());
}

TEST_CASE("a second backward needs keep", "[tape][faults]") {
  const Parameter x(Tensor{1, 2});
  Tape tape;
  SECTION("without it, refused, and the gradient is as the first pass left it") {
    const Tensor y = sum(x * x);
    tape.backward(y);
    CHECK(tape.size() == 0);
    CHECK_THROWS_WITH(tape.backward(y), ContainsSubstring("[backward]") && ContainsSubstring("consumed") &&
                                            ContainsSubstring("pass keep to run it twice"));
    CHECK_THROWS_WITH(tape.gradient(y, {x}), ContainsSubstring("[gradient]") && ContainsSubstring("consumed"));
    CHECK(grad_of(x) == Reals{2, 4});
  }
  SECTION("with it, the gradient doubles") {
    const Tensor y = sum(x * x);
    tape.backward(y, {.keep = true});
    const std::size_t steps = tape.size();
    CHECK(grad_of(x) == Reals{2, 4});
    tape.backward(y, {.keep = true});
    CHECK(tape.size() == steps);
    CHECK(grad_of(x) == Reals{4, 8});
    tape.backward(y);
    CHECK(grad_of(x) == Reals{6, 12});
    CHECK_THROWS_AS(tape.backward(y), Error);
  }
  SECTION("a kept tape records on") {
    const Tensor y = sum(x * x);
    tape.backward(y, {.keep = true});
    tape.backward(y * y);  // d y^2 = 2 y 2 x = 20 x, on top of 2 x
    CHECK(grad_of(x) == Reals{22, 44});
  }
}

TEST_CASE("an output of more than one element needs a seed of its shape", "[tape]") {
  const Parameter x(Tensor{1, 2});
  Tape tape;
  const Tensor y = x * 3;
  CHECK_THROWS_WITH(tape.backward(y), "[backward] an output of more than one element needs a seed; got (2)");
  CHECK_THROWS_WITH(tape.gradient(y, {x}), "[gradient] an output of more than one element needs a seed; got (2)");
  CHECK_THROWS_WITH(tape.backward(y, {.seed = Tensor{{1, 2}}}),
                    "[backward] the seed must have the output's shape; got (1,2) and (2)");
  CHECK_THROWS_AS(tape.backward(y, {.seed = Tensor(1)}), Error);
  CHECK_FALSE(x.has_grad());
  tape.backward(y, {.seed = Tensor{10, 100}});  // the refusals left the tape as it was
  CHECK(grad_of(x) == Reals{30, 300});
  tape.backward(Tensor(x * 2), {.seed = Tensor{1, 1}});
  tape.backward(sum(x), {.seed = Tensor(5)});
  CHECK(grad_of(x) == Reals{37, 307});
  const Parameter one(Tensor{{3}});
  tape.backward(one * 2);  // one element in any shape is enough
  CHECK(one.grad()(0, 0) == 2);
}

// ---- values changed in place --------------------------------------------------------------------------------------

TEST_CASE("a value that a rule saved can't be changed before backward", "[tape][faults]") {
  Parameter x(Tensor{1, 2});
  const auto changed = ContainsSubstring("a value that backward needs was changed in place after it was saved");
  Tape tape;
  SECTION("exp reads its output, so its input may change") {
    const Tensor y = exp(x);
    x.mutable_value() *= Real(2);
    tape.backward(y, {.seed = Tensor{1, 1}});
    CHECK(grad_of(x)[0] == Approx(std::exp(1.0)));
    CHECK(grad_of(x)[1] == Approx(std::exp(2.0)));
  }
  SECTION("the output itself has no way to be changed") {
    Tensor y = exp(x);
    CHECK_THROWS_WITH(y.mutable_value(), ContainsSubstring("detach"));
    tape.backward(y, {.seed = Tensor{1, 1}});
    CHECK(grad_of(x)[0] == Approx(std::exp(1.0)));
  }
  SECTION("sin reads its input") {
    const Tensor y = sin(x);
    x.mutable_value() *= Real(2);
    CHECK_THROWS_WITH(tape.backward(sum(y)), ContainsSubstring("[sin] ") && changed);
    CHECK_FALSE(x.has_grad());
    CHECK(tape.size() == 0);
    tape.backward(sum(sin(x)));
    CHECK(grad_of(x)[0] == Approx(std::cos(2.0)));
  }
  SECTION("sin's gradient is right when nothing changed") {
    tape.backward(sum(sin(x)));
    CHECK(grad_of(x)[0] == Approx(1.0806 / 2).margin(1e-4));
    CHECK(grad_of(x)[1] == Approx(-0.8323 / 2).margin(1e-4));
  }
  SECTION("a changed constant is noticed as well") {
    Tensor c{3, 4};
    const Tensor y = x * c;
    c.mutable_value()(0) = 0;
    CHECK_THROWS_WITH(tape.backward(sum(y)), ContainsSubstring("[mul] ") && changed);
  }
  SECTION("add reads nothing") {
    Tensor c{3, 4};
    const Tensor y = (x + c) * 2;
    c.mutable_value() *= Real(0);
    x.mutable_value() *= Real(0);
    tape.backward(sum(y));
    CHECK(grad_of(x) == Reals{2, 2});
  }
  SECTION("an optimiser's step between two kept passes is noticed") {
    const Tensor y = sum(x * x);
    tape.backward(y, {.keep = true});
    x.mutable_value() -= Real(0.1) * x.grad();
    CHECK_THROWS_WITH(tape.backward(y, {.keep = true}), ContainsSubstring("[mul] ") && changed);
    CHECK(grad_of(x) == Reals{2, 4});
    CHECK(tape.size() > 0);
  }
  SECTION("gradient notices too, and at the second order") {
    const Tensor y = sum(x * x * x);
    const Tensor g = tape.gradient(y, {x}, {.create_graph = true})[0];
    x.mutable_value()(0) = 5;
    CHECK_THROWS_WITH(tape.gradient(y, {x}, {.create_graph = true}), changed);
    CHECK_THROWS_WITH(tape.backward(sum(g)), changed);
    CHECK_FALSE(x.has_grad());
  }
}

TEST_CASE("a leaf or a gradient whose shape was changed is refused", "[tape]") {
  Parameter x(Tensor{1, 2});
  Tape tape;
  SECTION("the leaf, before backward") {
    const Tensor y = sum(x + 1);
    x.mutable_value() = Array(Shape{3}, Real(1));
    CHECK_THROWS_WITH(tape.backward(y),
                      ContainsSubstring("[backward] a leaf's shape must stay") && ContainsSubstring("(3) and (2)"));
    CHECK_FALSE(x.has_grad());
  }
  SECTION("the gradient that is added to") {
    tape.backward(sum(x));
    x.mutable_grad() = Array(Shape{5}, Real(1));
    const Tensor y = sum(x);
    CHECK_THROWS_WITH(tape.backward(y), ContainsSubstring("must have its Tensor's shape; got (5) and (2)"));
    x.zero_grad();
    tape.backward(y);
    CHECK(grad_of(x) == Reals{1, 1});
  }
}

// ---- several tapes ------------------------------------------------------------------------------------------------

TEST_CASE("a Tensor of a consumed tape is refused, its value welcome", "[tape]") {
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor y = x * x;
  tape.backward(y);
  CHECK_THROWS_WITH(
      y * 2, ContainsSubstring("[mul] an operand was recorded") && kNotThisTape && ContainsSubstring("say detach()"));
  CHECK_THROWS_WITH(exp(y), ContainsSubstring("[exp] ") && kNotThisTape);
  CHECK((y.detach() * 2).item() == 8);
  tape.backward(x * y.detach());
  CHECK(x.grad()() == 8);
}

TEST_CASE("a Tensor of a closed tape is refused under another", "[tape]") {
  const Parameter x(Tensor(2));
  Tensor y;
  {
    Tape tape;
    y = x * x;
  }
  CHECK((y + 1).item() == 5);  // inference
  CHECK_FALSE((y + 1).requires_grad());
  Tape tape;
  CHECK_THROWS_WITH(y + 1, kNotThisTape);
  CHECK_THROWS_WITH(x + y, kNotThisTape);
  CHECK_THROWS_AS(tape.backward(y), Error);
  CHECK_THROWS_WITH(tape.gradient(x * x, {y}), ContainsSubstring("each x must be a leaf or on this tape"));
  tape.backward(x + y.detach());
  CHECK(x.grad()() == 1);
}

TEST_CASE("an outer tape waits while an inner one records", "[tape]") {
  const Parameter x(Tensor(2));
  Tape outer;
  const Tensor y = x * x;
  {
    Tape inner;
    CHECK(Tape::open() == &inner);
    CHECK_THROWS_WITH(y * 2, kNotThisTape);
    const Tensor z = x * 3 * y.detach();
    CHECK_THROWS_WITH(outer.backward(z), ContainsSubstring("the output is not on this tape"));
    CHECK_THROWS_WITH(outer.gradient(y, {x}, {.create_graph = true}), ContainsSubstring("innermost"));
    CHECK(elements(outer.gradient(y, {x}, {.keep = true})[0]) == Reals{4});
    inner.backward(z);
    CHECK(x.grad()() == 12);
  }
  CHECK(Tape::open() == &outer);
  outer.backward(y * 10);
  CHECK(x.grad()() == 52);
}

TEST_CASE("a leaf may be used under two tapes in turn", "[tape]") {
  const Parameter x(Tensor(3));
  Tape outer;
  Tensor y = x * 2;
  for (int i = 0; i < 3; ++i) {
    Tape inner;
    const Tensor z = x * x;
    CHECK(elements(inner.gradient(z, {x})[0]) == Reals{6});
    inner.backward(x * 5);
  }
  y = y + x * x;
  {
    Tape inner;
    inner.backward(x * 100);
  }
  y = y + x * 7;
  CHECK(elements(outer.gradient(y, {x}, {.keep = true})[0]) == Reals{15});
  CHECK(elements(outer.gradient(y, {x}, {.create_graph = true})[0]) == Reals{15});
  outer.backward(y);
  CHECK(x.grad()() == 3 * 5 + 100 + 2 + 6 + 7);
}

TEST_CASE("tapes on the heap may be closed out of order", "[tape]") {
  const Parameter x(Tensor(2));
  auto a = std::make_unique<Tape>();
  auto b = std::make_unique<Tape>();
  auto c = std::make_unique<Tape>();
  const Tensor y = x * x;
  b.reset();
  CHECK(Tape::open() == c.get());
  a.reset();
  CHECK(Tape::open() == c.get());
  c->backward(y);
  CHECK(x.grad()() == 4);
  auto d = std::make_unique<Tape>();
  c.reset();
  CHECK(Tape::open() == d.get());
  d->backward(x * 5);
  CHECK(x.grad()() == 9);
  d.reset();
  CHECK(Tape::open() == nullptr);
}

TEST_CASE("nothing is recorded while a NoTape lives", "[tape]") {
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor y = x * x;
  {
    const NoTape none;
    CHECK(Tape::open() == nullptr);
    CHECK_FALSE((y * 3).requires_grad());
    CHECK((y * 3).item() == 12);
    {
      const NoTape again;
      CHECK(Tape::open() == nullptr);
    }
    CHECK(Tape::open() == nullptr);
    {
      Tape inner;
      CHECK((x * 3).requires_grad());
    }
    CHECK(Tape::open() == nullptr);
    CHECK(elements(tape.gradient(y, {x}, {.keep = true})[0]) == Reals{4});
    CHECK_THROWS_AS(tape.gradient(y, {x}, {.create_graph = true}), Error);
  }
  CHECK(Tape::open() == &tape);
  tape.backward(y);
  CHECK(x.grad()() == 4);
}

TEST_CASE("a tape may be closed or opened while a NoTape lives", "[tape]") {
  auto tape = std::make_unique<Tape>();
  auto none = std::make_unique<NoTape>();
  tape.reset();
  auto other = std::make_unique<Tape>();
  none.reset();
  CHECK(Tape::open() == other.get());
  const Parameter x(Tensor(2));
  other->backward(x * x);
  CHECK(x.grad()() == 4);
  other.reset();
  CHECK(Tape::open() == nullptr);
}

TEST_CASE("values and gradients outlive their tape", "[tape]") {
  const Parameter x(Tensor{1, 2});
  Tensor y, g;
  {
    Tape tape;
    y = exp(x);
    g = tape.gradient(sum(x * x), {x}, {.create_graph = true})[0];
  }
  CHECK(y.value()(0) == Approx(std::exp(1.0)));
  CHECK(elements(g) == Reals{2, 4});
}

// ---- record -------------------------------------------------------------------------------------------------------

TEST_CASE("an existing Tensor can't be recorded as an output", "[tape]") {
  const auto identity = []<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += dy; };
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor y = x * x;
  CHECK_THROWS_WITH(record("same", x, identity, x), "[same] the recorded value must be a new Tensor");
  CHECK_THROWS_WITH(record("same", y, identity, y), "[same] the recorded value must be a new Tensor");
  tape.backward(y);
  CHECK(x.grad()() == 4);
}

TEST_CASE("a refused operand leaves the tape as it was", "[tape]") {
  const Parameter x(Tensor(2)), z(Tensor(3));
  Tensor stale;
  {
    Tape tape;
    stale = x * x;
  }
  Tape tape;
  const Tensor y = x * 3;
  CHECK_THROWS_AS(z * stale, Error);  // z is met before the refusal
  CHECK_THROWS_AS(z * Tensor(), Error);
  CHECK_THROWS_AS((Tensor{1, 2} * z * Tensor{1, 2, 3}), Error);
  tape.backward(y * z);
  CHECK(x.grad()() == 9);
  CHECK(z.grad()() == 6);
}

// ---- gradient -----------------------------------------------------------------------------------------------------

TEST_CASE("gradient gives what it is asked for and touches no .grad", "[tape]") {
  const Parameter x(Tensor{1, 2}), w(Tensor{3, 4}), unused(Tensor{5, 6, 7});
  Tape tape;
  const Tensor h = x * w;
  const Tensor y = sum(h * h);
  const Tensor after = y * 2;
  const auto g = tape.gradient(y, {w, h, x, unused, x, y, after}, {.keep = true});
  CHECK(elements(g[0]) == Reals{6, 32});    // 2 h x
  CHECK(elements(g[1]) == Reals{6, 16});    // 2 h
  CHECK(elements(g[2]) == Reals{18, 64});   // 2 h w
  CHECK(elements(g[3]) == Reals{0, 0, 0});  // y does not depend on it
  CHECK(elements(g[4]) == elements(g[2]));  // the same x twice
  CHECK(elements(g[5]) == Reals{1});        // y itself
  CHECK(elements(g[6]) == Reals{0});        // later than y
  CHECK(g[3].shape() == unused.shape());
  for (const Tensor& x_or_g : {Tensor(x), Tensor(w), Tensor(unused), g[0], g[1]}) CHECK_FALSE(x_or_g.has_grad());
  CHECK_FALSE(g[0].requires_grad());
  CHECK(tape.gradient(y, {}, {.keep = true}).empty());
  tape.backward(y);  // asking did not disturb the next pass
  CHECK(grad_of(x) == Reals{18, 64});
  CHECK(grad_of(w) == Reals{6, 32});
}

TEST_CASE("gradient consumes the tape unless kept", "[tape]") {
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor y = x * x;
  CHECK(elements(tape.gradient(y, {x})[0]) == Reals{4});
  CHECK(tape.size() == 0);
  CHECK_THROWS_WITH(tape.gradient(y, {x}), ContainsSubstring("consumed"));
  CHECK_FALSE(x.has_grad());
  x.has_grad();
  tape.backward(x * 3);
  CHECK(x.grad()() == 3);
}

TEST_CASE("gradient of an interior Tensor stops there", "[tape]") {
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor h = x * x;
  const Tensor y = exp(h) * x;
  const auto g = tape.gradient(y, {h});
  CHECK(g[0].item() == Approx(std::exp(4.0) * 2));
}

TEST_CASE("gradient refuses an x that requires no grad or is undefined", "[tape]") {
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor y = x * x;
  CHECK_THROWS_WITH(tape.gradient(y, {Tensor(1)}), "[gradient] each x must require grad; got ()");
  CHECK_THROWS_AS(tape.gradient(y, {x, Tensor()}), Error);
  tape.backward(y);
  CHECK(x.grad()() == 4);
}

TEST_CASE("gradients can be differentiated again, to the third order", "[tape]") {
  const Parameter x(Tensor{1, 2});
  Tape tape;
  const Tensor y = sum(x * x * x * x + exp(2 * x));
  const Tensor g1 = tape.gradient(y, {x}, {.create_graph = true})[0];
  const Tensor g2 = tape.gradient(sum(g1), {x}, {.create_graph = true})[0];
  const Tensor g3 = tape.gradient(sum(g2), {x}, {.create_graph = true})[0];
  for (int i = 0; i < 2; ++i) {
    const double v = i + 1;
    CHECK(g1.value()(i) == Approx(4 * v * v * v + 2 * std::exp(2 * v)));
    CHECK(g2.value()(i) == Approx(12 * v * v + 4 * std::exp(2 * v)));
    CHECK(g3.value()(i) == Approx(24 * v + 8 * std::exp(2 * v)));
  }
  CHECK_FALSE(x.has_grad());
  tape.backward(sum(g3));
  for (int i = 0; i < 2; ++i) CHECK(x.grad()(i) == Approx(24 + 16 * std::exp(2.0 * (i + 1))));
}

TEST_CASE("mixed second derivatives, with respect to interior Tensors too", "[tape]") {
  const Parameter x(Tensor(2)), w(Tensor(3));
  Tape tape;
  const Tensor h = x * w;                                           // 6
  const Tensor y = h * h * x;                                       // w^2 x^3
  const auto g = tape.gradient(y, {x, h}, {.create_graph = true});  // 3 w^2 x^2, 2 h x
  CHECK(g[0].item() == 108);
  CHECK(g[1].item() == 24);
  CHECK(tape.gradient(g[0], {w}, {.keep = true})[0].item() == 72);       // 6 w x^2
  CHECK(tape.gradient(g[1], {h, x, w}, {.keep = true})[0].item() == 4);  // 2 x
  CHECK(tape.gradient(g[1], {x}, {.keep = true})[0].item() == 24);       // 4 w x
  CHECK(tape.gradient(g[0] + g[1], {x}, {.keep = true})[0].item() == 108 + 24);
}

TEST_CASE("a penalty on a gradient trains", "[tape]") {
  const Parameter x(Tensor(2)), w(Tensor(3));
  Tape tape;
  const Tensor y = w * x * x;
  const Tensor g = tape.gradient(y, {x}, {.create_graph = true})[0];  // 2 w x
  tape.backward(g * g);                                               // 4 w^2 x^2
  CHECK(w.grad()() == 8 * 3 * 4);
  CHECK(x.grad()() == 8 * 9 * 2);
}

TEST_CASE("a seed may itself be differentiated", "[tape]") {
  const Parameter x(Tensor{1, 2}), v(Tensor{3, 4});
  Tape tape;
  const Tensor y = x * x;
  const Tensor g = tape.gradient(y, {x}, {.seed = v, .create_graph = true})[0];  // 2 x v
  CHECK(elements(g) == Reals{6, 16});
  tape.backward(sum(g));
  CHECK(grad_of(v) == Reals{2, 4});
  CHECK(grad_of(x) == Reals{6, 8});
}

TEST_CASE("a gradient that does not depend on anything is a constant", "[tape]") {
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor g = tape.gradient(3 * x, {x}, {.create_graph = true})[0];
  CHECK(g.item() == 3);
  CHECK_FALSE(g.requires_grad());
  CHECK_THROWS_WITH(tape.gradient(g, {x}), ContainsSubstring("depends on nothing"));
}

TEST_CASE("backward refuses create_graph", "[tape]") {
  const Parameter x(Tensor(2));
  Tape tape;
  CHECK_THROWS_WITH(tape.backward(x * x, {.create_graph = true}), ContainsSubstring("[backward] create_graph"));
}

// ---- broadcasting -------------------------------------------------------------------------------------------------

TEST_CASE("a gradient is summed down to its operand's shape", "[tape]") {
  const Parameter column(Tensor{{1}, {2}, {3}}), row(Tensor{{1, 2, 3, 4}}), scalar(Tensor(2));
  Tape tape;
  tape.backward(sum((column + row) * scalar));
  CHECK(column.grad().shape() == Shape{3, 1});
  CHECK(row.grad().shape() == Shape{1, 4});
  CHECK(scalar.grad().shape() == Shape{});
  CHECK(grad_of(column) == Reals{8, 8, 8});
  CHECK(grad_of(row) == Reals{6, 6, 6, 6});
  CHECK(grad_of(scalar) == Reals{54});
}

// ---- long chains --------------------------------------------------------------------------------------------------

TEST_CASE("a long chain needs no stack and linear time", "[tape][faults]") {
  const auto seconds_of = [](int ops, bool run_backward) {
    const auto start = std::chrono::steady_clock::now();
    const Parameter x(Tensor(1));
    {
      Tape tape;
      Tensor y = x;
      for (int i = 0; i < ops / 2; ++i) y = y + y * Real(1e-6);
      if (run_backward) tape.backward(y);
      y = Tensor();
    }
    if (run_backward) CHECK(x.grad()() == Approx(std::pow(1 + 1e-6, ops / 2)).epsilon(1e-2));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  on_small_stack(1 << 20, [&] {
    seconds_of(150000, false);
    const double short_time = seconds_of(150000, true);
    seconds_of(1000000, false);
    const double long_time = seconds_of(1000000, true);
    CHECK(long_time < 4 * (1000000.0 / 150000) * short_time + 0.5);  // quadratic would be 44 times
  });
}

TEST_CASE("a long chain can be differentiated twice", "[tape]") {
  on_small_stack(1 << 20, [&] {
    const Parameter x(Tensor(1));
    Tape tape;
    Tensor y = x * x;
    for (int i = 0; i < 20000; ++i) y = y + x * Real(1e-4);
    const Tensor g = tape.gradient(y, {x}, {.create_graph = true})[0];
    CHECK(g.item() == Approx(4).epsilon(1e-3));
    tape.backward(g);
    CHECK(x.grad()() == 2);
  });
}

TEST_CASE("a rule can't run its own tape, and a tape may be closed by another thread", "[tape]") {
  static Tape* current = nullptr;
  const Parameter x(Tensor(2));
  {
    Tape tape;
    current = &tape;
    const Tensor y = x * x;
    const Tensor z = record(
        "selfish", Tensor(Array(y.value())),
        []<class T>(const T& y, const T& dy, Unread, Sink<T> dx) {
          if constexpr (std::is_same_v<T, Tensor>) current->gradient(y, {y});
          if constexpr (std::is_same_v<T, Array>) current->backward(Tensor(y));
          dx += dy;
        },
        y);
    CHECK_THROWS_WITH(tape.gradient(z, {x}, {.create_graph = true}), ContainsSubstring("can't run the tape"));
    CHECK_THROWS_WITH(tape.backward(z), ContainsSubstring("can't run the tape"));
  }
  auto tape = std::make_unique<Tape>();
  std::thread([&] { tape.reset(); }).join();
  CHECK(Tape::open() == nullptr);
  CHECK_FALSE((x * x).requires_grad());
}

TEST_CASE("a gradient that is passed on whole is moved only where nobody else reads it", "[tape]") {
  const Tensor seed{1, 2, 3};
  const auto gradients = [&](const auto& f) {
    const Parameter x(Tensor{4, 5, 6});
    Tape tape;
    const Tensor y = f(x);
    return tape.gradient(y, {x}, {.seed = seed})[0];
  };
  check_close(gradients([](const Tensor& x) { return x + x; }), Tensor{2, 4, 6});
  check_close(gradients([](const Tensor& x) { return x - x; }), Tensor{0, 0, 0});
  check_close(gradients([](const Tensor& x) { return (x + x * x) + x; }), Tensor{10, 24, 42});
  check_close(gradients([](const Tensor& x) { return x + reshape(x + Tensor(1), {3}); }), Tensor{2, 4, 6});
  check_close(seed, Tensor{1, 2, 3});

  // A rule that reads dy after passing it on, to the same operand too.
  const auto twice = [](const Tensor& x) {
    return record(
        "twice", Tensor(x.value() + x.value() + x.value()),
        []<class T>(Unread, const T& dy, Unread, Unread, Sink<T> da, Sink<T> db) {
          da += dy;
          db += dy;
          da += dy * Real(1);
        },
        x, x);
  };
  check_close(gradients(twice), Tensor{3, 6, 9});

  // Interior Tensors and doubled questions get arrays of their own.
  const Parameter x(Tensor{4, 5, 6});
  Tape tape;
  const Tensor inside = x * Real(2);
  const Tensor y = inside + x;
  const std::vector<Tensor> all = tape.gradient(y, {y, inside, x, inside}, {.seed = seed});
  check_close(all[0], Tensor{1, 2, 3});
  check_close(all[1], Tensor{1, 2, 3});
  check_close(all[2], Tensor{3, 6, 9});
  check_close(all[3], Tensor{1, 2, 3});
}

TEST_CASE("a throw after a gradient was passed on leaves nothing borrowed", "[tape]") {
  const Parameter a(Tensor{1, 2});
  const auto failing = [](const Tensor& x, bool fails) {
    return record(
        "failing", Tensor(Array(x.value())),
        [fails]<class T>(Unread, const T& dy, Unread, Sink<T> dx) {
          dx += dy;
          if (fails) throw std::runtime_error("the rule failed");
        },
        x);
  };
  Tape tape;
  const Tensor x = a * Real(3);
  const Tensor bad = sum(failing(x, true));
  CHECK_THROWS(tape.backward(bad, {.keep = true}));
  tape.backward(sum(failing(x, false)));
  check_close(a.grad(), Tensor{3, 3});
}
