// What docs/pitfalls.md warns of; the page shows the parts of this file.
#include "tapegrad.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

TEST_CASE("pitfall: no tape") {
  // [no tape]
  Parameter w(Tensor{1, 2});
  const Tensor early = sum(square(w));  // nothing is recorded
  Tape tape;
  check_refused([&] { tape.backward(early); }, "was a Tape open");
  tape.backward(sum(square(w)));  // this is
  // [/no tape]
  check_close(w.grad(), Tensor{2, 4});
}

TEST_CASE("pitfall: gradients add up") {
  // [zero grad]
  Parameter w(Tensor(3));
  for (int step = 0; step < 2; ++step) {
    Tape tape;
    tape.backward(square(w));
  }
  CHECK(w.grad()() == 12);  // not 6: two passes
  w.zero_grad();
  CHECK(!w.has_grad());
  // [/zero grad]
}

TEST_CASE("pitfall: a tape that lives too long") {
  // [long tape]
  Parameter w(Tensor(3));
  Tape tape;
  for (int i = 0; i < 100; ++i) square(w);  // the results are thrown away, their steps are not
  CHECK(tape.size() == 101);
  {
    const NoTape none;
    square(w);
  }
  CHECK(tape.size() == 101);
  // [/long tape]
}

TEST_CASE("pitfall: a value changed in place") {
  // [in place]
  Parameter w(Tensor(3));
  Tape tape;
  const Tensor y = square(w);
  w.mutable_value() *= 2;
  check_refused([&] { tape.backward(y); }, "changed in place");
  // [/in place]
}

TEST_CASE("pitfall: masking after the division") {
  // [mask]
  const Parameter b(Tensor{2, 0});
  const Mask good = b > Tensor(0);
  {
    Tape tape;
    const Tensor late = sum(where(good, Real(1) / b, Tensor(0)));
    const Array dlate = tape.gradient(late, {b})[0].value();
    CHECK(dlate(0) == Real(-0.25));
    CHECK(std::isnan(dlate(1)));
  }
  Tape tape;
  const Tensor early = sum(where(good, Real(1) / where(good, b, Tensor(1)), Tensor(0)));
  check_close(tape.gradient(early, {b})[0], Tensor{-0.25, 0});
  // [/mask]
}

TEST_CASE("pitfall: dropout in evaluation") {
  // [eval]
  Rng rng(0);
  nn::Dropout dropout(0.5, rng);
  const Tensor x = ones({100});
  CHECK(count_true(dropout(x) != x) > 0);
  dropout.eval();
  CHECK(count_true(dropout(x) != x) == 0);
  // [/eval]
}

// [plain member]
struct Forgetful : nn::Module {
  explicit Forgetful(Rng& rng) : plain(2, 3, rng), known(child<nn::Linear>("known", 2, 3, rng)) {}
  nn::Linear plain, known;
};

TEST_CASE("pitfall: a module that nobody knows of") {
  Rng rng(0);
  const Forgetful net(rng);
  CHECK(net.parameter_count() == 2 * 3 + 3);  // of `known` only
}
// [/plain member]

TEST_CASE("pitfall: a parameter that was replaced") {
  // [replaced]
  Rng rng(0);
  nn::Linear layer(2, 1, rng);
  const Parameter registered = layer.parameters()[0];
  layer.weight.mutable_value() = Array{{5, 6}};
  CHECK(registered.value()(0, 0) == 5);  // the same parameter, changed
  layer.weight = Parameter(Tensor{{7, 8}});
  CHECK(registered.value()(0, 0) == 5);  // another one: the optimiser still has the old
  // [/replaced]
}

TEST_CASE("pitfall: shapes that broadcast by accident") {
  // [broadcast]
  const Tensor predictions{{1}, {2}, {3}}, targets{1, 2, 3};
  CHECK((predictions - targets).size() == 9);
  check_refused([&] { mse_loss(predictions, targets); }, "(3,1) and (3)");
  CHECK(mse_loss(squeeze(predictions, 1), targets).item() == 0);
  // [/broadcast]
}

TEST_CASE("pitfall: second derivatives of a plain gradient") {
  // [second]
  const Parameter x(Tensor(2));
  Tape tape;
  const Tensor y = x * x * x;
  const Tensor first = tape.gradient(y, {x}, {.create_graph = true})[0];
  CHECK(first.item() == 12);                         // 3 x^2
  CHECK(tape.gradient(first, {x})[0].item() == 12);  // 6 x
  // [/second]
}

}  // namespace
