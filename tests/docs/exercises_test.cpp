// The exercises of docs/walkthroughs, answered; each page shows its own part of this file.
#include <sstream>

#include "docs/programs/toy.hpp"
#include "tapegrad.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

// [1]
TEST_CASE("1.1: the mean absolute error sends back signs") {
  const Array x{1, 2, 3}, y{2, 9, 4};
  Parameter w(Tensor(2)), b(Tensor(1));
  Tape tape;
  tape.backward(mean(abs(w * x + b - y)));
  double by_hand_w = 0, by_hand_b = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double error = 2 * x(i) + 1 - y(i);  // 1, -4, 3
    by_hand_w += (error > 0 ? 1 : -1) * x(i) / 3;
    by_hand_b += (error > 0 ? 1 : -1) / 3.0;
  }
  CHECK(w.grad()() == Approx(by_hand_w));
  CHECK(b.grad()() == Approx(by_hand_b));
}

TEST_CASE("1.2: gradient descent diverges from the rate 2 / (largest eigenvalue) on") {
  Rng rng(0);
  const Tensor x = rng.uniform({20}, 0, 5), y = Real(2) * x + Real(1) + rng.normal({20}, 0, 0.5);
  // The second derivatives are 2 mean(x^2), 2 mean(x) and 2: a symmetric matrix of two rows.
  const double ww = 2 * mean(square(x)).item(), wb = 2 * mean(x).item(), bb = 2;
  const double largest = (ww + bb) / 2 + std::hypot((ww - bb) / 2, wb);
  const auto loss_after = [&](double rate) {
    Parameter w(Tensor(0)), b(Tensor(0));
    optim::SGD optimizer({w, b}, {.learning_rate = rate});
    double loss = 0;
    for (int step = 0; step < 400; ++step) {
      optimizer.zero_grad();
      Tape tape;
      const Tensor now = mean(square(w * x + b - y));
      loss = now.item();
      tape.backward(now);
      optimizer.step();
    }
    return loss;
  };
  CHECK(loss_after(0.98 * 2 / largest) < 1);
  CHECK(loss_after(1.02 * 2 / largest) > 1000);
}

TEST_CASE("1.3: gradients add up until they are dropped") {
  Parameter w(Tensor(3));
  for (int pass = 0; pass < 2; ++pass) {
    Tape tape;
    tape.backward(square(w));
  }
  CHECK(w.grad()() == 12);  // 6 and 6
}
// [/1]

// [2]
TEST_CASE("2.1: an exponential for the toy") {
  struct WithExp : Toy {
    std::size_t exp(std::size_t x) {
      const std::size_t y = put(std::exp(values[x]));
      steps.push_back([=, this] { gradients[x] += gradients[y] * values[y]; });
      return y;
    }
  } toy;
  const std::size_t a = toy.put(0.5), b = toy.put(-1.5);
  toy.backward(toy.exp(toy.times(a, b)));
  Parameter x(Tensor(0.5)), y(Tensor(-1.5));
  Tape tape;
  tape.backward(exp(x * y));
  CHECK(x.grad()() == Approx(toy.gradients[a]));
  CHECK(y.grad()() == Approx(toy.gradients[b]));
}

TEST_CASE("2.2: what is computed twice is recorded twice") {
  Parameter x(Tensor(3));
  {
    Tape tape;
    const Tensor y = square(x) + square(x);
    CHECK(tape.size() == 4);  // the leaf, two squares, the sum
    tape.backward(y);         // 6 through each square
  }
  const Real twice = x.grad()();
  x.zero_grad();
  Tape tape;
  const Tensor s = square(x), y = s + s;
  CHECK(tape.size() == 3);
  tape.backward(y);  // 1 and 1 meet at s, then 2 times 6
  CHECK(x.grad()() == twice);
}

TEST_CASE("2.3: a sum keeps nothing, a product its operands") {
  const auto printed = [](const auto& f) {
    Parameter x(Tensor{1, 2, 3});
    Tape tape;
    f(x);
    std::ostringstream table;
    tape.print(table);
    return table.str();
  };
  const std::string sum = printed([](const Tensor& x) { return x + x; });
  const std::string product = printed([](const Tensor& x) { return x * x; });
  const std::string bytes = std::to_string(3 * sizeof(Real));
  CHECK(sum.find(bytes) == std::string::npos);
  CHECK(product.find(bytes) != std::string::npos);
}
// [/2]

// [3]
TEST_CASE("3.1: a check proves its own inputs only") {
  const auto f = [](const std::vector<Tensor>& xs) {
    return record(
        "cube", Tensor(xs[0].value() * xs[0].value() * xs[0].value()),
        []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
          if constexpr (std::is_same_v<T, Array>) {
            dx += dy * Real(3) * x * x * xt::where(x < Real(0), Real(1.01), Real(1));
          } else {
            dx += dy * Real(3) * x * x;
          }
        },
        xs[0]);
  };
  if constexpr (kDouble) {
    CHECK(grad_check(f, {Tensor{0.5, 1, 2}}).passed);
    CHECK(!grad_check(f, {Tensor{0.5, -1, 2}}).passed);
  }
}

TEST_CASE("3.2: at a kink there is no derivative to compare with") {
  const auto f = [](const std::vector<Tensor>& xs) { return relu(xs[0]); };
  if constexpr (kDouble) {
    CHECK(!grad_check(f, {Tensor{0.0}}).passed);  // the rule says 0, the difference half of dy
    CHECK(grad_check(f, {Tensor{0.1}}).passed);
  }
}

TEST_CASE("3.3: the same random numbers at each call") {
  const Tensor x = Tensor{1, 2, 3, 4, 5, 6, 7, 8};
  if constexpr (kDouble) {
    const auto f = [](const std::vector<Tensor>& xs) {
      Rng rng(7);  // made anew, so that each call drops the same elements
      return dropout(square(xs[0]), 0.5, rng);
    };
    CHECK(grad_check(f, {x}).passed);
    Rng outside(7);
    const auto g = [&](const std::vector<Tensor>& xs) { return dropout(square(xs[0]), 0.5, outside); };
    bool failed = false;
    try {
      failed = !grad_check(g, {x}).passed;
    } catch (const Error&) {
      failed = true;
    }
    CHECK(failed);
  }
}
// [/3]

}  // namespace
