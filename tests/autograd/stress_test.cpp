// Memory and threads under load: flat, nothing from the system when warm, and nothing half done when there is none.
#include <fstream>
#include <thread>

#include "autograd/ops.hpp"
#include "autograd/random.hpp"
#include "tests/allocations.hpp"
#include "tests/catch.hpp"

using namespace tapegrad;

namespace {

using Reals = std::vector<Real>;
Reals elements(const Array& x) { return {x.storage().begin(), x.storage().end()}; }

/// Kernel regression in small: leave-one-out pairs of n points, a weight per key, fitted by gradient descent.
struct Regression {
  explicit Regression(std::size_t n = 12, std::uint64_t seed = 1) : w(Tensor(Rng(seed).uniform(Shape{n - 1}))) {
    Rng rng(seed + 1);
    const Array x = rng.uniform(Shape{n}, 0, 5);
    Array q = empty_array(Shape{n, 1}), k = empty_array(Shape{n, n - 1}), v = k, y = empty_array(Shape{n});
    for (std::size_t i = 0; i < n; ++i) {
      q(i, 0) = x(i);
      y(i) = 2 * std::sin(x(i)) + std::pow(x(i), Real(0.8));
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j + 1 < n; ++j) {
        const std::size_t other = j < i ? j : j + 1;
        k(i, j) = x(other);
        v(i, j) = y(other);
      }
    }
    queries = Tensor(q);
    keys = Tensor(k);
    values = Tensor(v);
    targets = Tensor(y);
  }

  Tensor loss() const {
    const Tensor attention = softmax(square((queries - keys) * w) * Real(-0.5), 1);
    return mse_loss(sum(attention * values, 1), targets, Reduction::sum);
  }

  /// One step; returns the loss before it.
  Real step() {
    Tape tape;
    const Tensor l = loss();
    tape.backward(l);
    w.mutable_value() -= Real(0.01) * w.grad();
    w.zero_grad();
    return l.item();
  }

  Parameter w;
  Tensor queries, keys, values, targets;
};

/// Bytes of this process in memory; 0 where the system does not say.
std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  statm >> pages >> pages;
  return pages * 4096;
}

}  // namespace

TEST_CASE("ten thousand training steps stay in the memory of the first", "[stress]") {
  Regression model;
  const Real first = model.step();
  for (int i = 0; i < 100; ++i) model.step();
  const std::size_t pooled = pooled_bytes();
  const std::size_t resident = resident_bytes();
  Real last = 0;
  for (int i = 0; i < 10000; ++i) last = model.step();
  CHECK(last < first);
  CHECK(pooled_bytes() == pooled);
#ifndef __SANITIZE_ADDRESS__  // which keeps freed blocks for a while
  CHECK(resident_bytes() <= resident + (std::size_t{1} << 20));
#endif
}

TEST_CASE("a warm training step asks the system for no memory", "[stress]") {
  if (pooled_bytes() == 0) return;  // under AddressSanitizer nothing is pooled
  Regression model;
  for (int i = 0; i < 3; ++i) model.step();
  const std::size_t before = allocations::count();
  for (int i = 0; i < 10; ++i) model.step();
  CHECK(allocations::count() == before);
}

TEST_CASE("whichever allocation fails, nothing is left half done", "[stress]") {
  Regression model(6), expected(6);
  const Parameter scale(Tensor(2)), expected_scale(Tensor(2));
  {
    Tape tape;
    tape.backward(expected.loss() * expected_scale);
  }
  const Reals w_grad = elements(expected.w.grad());
  const Reals w_twice = [&] {
    Reals twice = w_grad;
    for (Real& g : twice) g *= 2;
    return twice;
  }();
  const Real scale_grad = expected_scale.grad()();

  const bool with_old_gradients = GENERATE(false, true);
  const std::size_t times = GENERATE(std::size_t{1}, std::size_t{2}, SIZE_MAX);  // the pool tries once again
  bool failed_before = true;
  std::size_t failures = 0;
  for (std::size_t n = 0; failed_before; ++n) {
    REQUIRE(n < 5000);
    model.w.zero_grad();
    Tensor(scale).zero_grad();
    Tape tape;
    if (with_old_gradients) tape.backward(model.loss() * scale);
    bool threw = false;
    release_pooled_memory();
    {
      const allocations::Failing failing(n, times);
      try {
        tape.backward(model.loss() * scale);
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      failed_before = failing.happened();
    }
    failures += threw;
    if (times == SIZE_MAX) REQUIRE(threw == failed_before);

    if (threw) {  // as before
      REQUIRE(model.w.has_grad() == with_old_gradients);
      REQUIRE(scale.has_grad() == with_old_gradients);
      if (with_old_gradients) {
        REQUIRE(elements(model.w.grad()) == w_grad);
        REQUIRE(scale.grad()() == scale_grad);
      }
    } else {  // as after
      REQUIRE(elements(model.w.grad()) == (with_old_gradients ? w_twice : w_grad));
      REQUIRE(scale.grad()() == (with_old_gradients ? 2 : 1) * scale_grad);
    }
    model.w.zero_grad();
    Tensor(scale).zero_grad();
    tape.backward(model.loss() * scale);  // the tape is good for a new recording
    REQUIRE(elements(model.w.grad()) == w_grad);
    REQUIRE(scale.grad()() == scale_grad);
  }
  CHECK((failures > 10 || times == 1));  // one failure the pool may make good
}

TEST_CASE("gradient and its graph survive failing allocations", "[stress]") {
  const Parameter x(Tensor{1, 2}), w(Tensor{3, 4});
  const bool create_graph = GENERATE(false, true);
  const bool keep = GENERATE(false, true);
  bool failed = true;
  for (std::size_t n = 0; failed; ++n) {
    REQUIRE(n < 5000);
    Tape tape;
    bool threw = false;
    Tensor y;
    release_pooled_memory();
    {
      const allocations::Failing failing(n);
      try {
        const Tensor h = x * w;
        y = sum(exp(h) * h);
        const auto g = tape.gradient(y, {w, h, x}, {.keep = keep, .create_graph = create_graph});
        if (create_graph) tape.gradient(sum(g[0]), {x, w}, {.keep = keep});
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      failed = failing.happened();
    }
    REQUIRE(threw == failed);
    REQUIRE_FALSE((x.has_grad() || w.has_grad()));
    if (y.defined()) {  // either consumed or as it was, never half consumed
      try {
        const auto g = tape.gradient(y, {x}, {.keep = true});
        REQUIRE(g[0].value()(0) == Approx(3 * std::exp(3.0) * (1 + 3)));
      } catch (const Error&) {
        REQUIRE(tape.size() == 0);
      }
    }
    REQUIRE(elements(tape.gradient(sum(x * w), {x})[0].value()) == Reals{3, 4});
  }
}

TEST_CASE("two threads train two models at once", "[stress][threads]") {
  const auto train = [](Regression& model, Reals& losses) {
    for (int i = 0; i < 300; ++i) losses.push_back(model.step());
  };
  Regression a(10, 1), b(10, 2), a_alone(10, 1), b_alone(10, 2);
  Reals a_losses, b_losses, a_expected, b_expected;
  std::thread first([&] { train(a, a_losses); });
  std::thread second([&] { train(b, b_losses); });
  first.join();
  second.join();
  train(a_alone, a_expected);
  train(b_alone, b_expected);
  CHECK(a_losses == a_expected);
  CHECK(b_losses == b_expected);
}

TEST_CASE("threads share data and read each other's parameters", "[stress][threads]") {
  const Tensor data(Rng(3).normal(Shape{64, 64}));
  const Parameter shared(Tensor(Rng(4).normal(Shape{64})));
  std::vector<std::thread> threads;
  std::vector<Real> results(4);
  for (Real& result : results) {
    threads.emplace_back([&] {
      const Parameter w(shared.detach());
      for (int i = 0; i < 20; ++i) {
        Tape tape;
        const Tensor copy = data;  // handles are counted atomically
        tape.backward(sum(square(copy * w - shared.detach())));
      }
      result = w.grad()(7);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Real result : results) CHECK(result == results[0]);
}

TEST_CASE("a million scalar ops take less than 200 MB", "[stress]") {
  if (pooled_bytes() == 0) return;
  release_pooled_memory();
  const std::size_t before = pooled_bytes();
  const Parameter x(Tensor(1));
  {
    Tape tape;
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = y * Real(1.000001);
    const std::size_t recorded = pooled_bytes() - before;
    tape.backward(y);
    const std::size_t most = pooled_bytes() - before;
    INFO(recorded << " bytes after recording, " << most << " after backward");
    CHECK(most < 200000000);
    CHECK(x.grad()() == Approx(std::exp(1.0)).epsilon(sizeof(Real) == 4 ? 0.1 : 1e-3));
  }
  release_pooled_memory();
  CHECK(pooled_bytes() < before + 100000);
}

TEST_CASE("values that no rule reads are not kept", "[stress]") {
  if (pooled_bytes() == 0) return;
  const Parameter x(Tensor(Array(Shape{1 << 20}, Real(1))));
  const std::size_t array = (1 << 20) * sizeof(Real);
  release_pooled_memory();
  const std::size_t before = pooled_bytes();
  Tape tape;
  Tensor y = x;
  for (int i = 0; i < 100; ++i) y = y + x;
  CHECK(pooled_bytes() <= before + 4 * array);
  tape.backward(sum(y));
  CHECK(x.grad()(5) == 101);
  CHECK(pooled_bytes() <= before + 8 * array);
}
