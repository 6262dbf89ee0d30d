// The exercises of docs/walkthroughs about the engine, answered; each page shows its own part of this file.
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

// [10]
/// Reads y only, so only y is kept.
Tensor softsign(const Tensor& x) {
  return record(
      "softsign", Tensor(x.value() / (Real(1) + xt::abs(x.value()))),
      []<class T>(const T& y, const T& dy, Unread, Sink<T> dx) {
        const T room = Real(1) - abs(y);
        dx += dy * room * room;
      },
      x);
}

TEST_CASE("10.1: softsign") {
  const Tensor x{-2, -0.3, 0.7, 5};
  check_close(softsign(x), x / (Real(1) + abs(x)));
  check_gradients([](const std::vector<Tensor>& xs) { return softsign(xs[0]); }, {x});
}

/// a x + y, x and y broadcasting.
Tensor axpy(Real a, const Tensor& x, const Tensor& y) {
  return record(
      "axpy", Tensor(x.value() * a + y.value()),
      [a]<class T>(Unread, const T& dy, Unread, Unread, Sink<T> dx, Sink<T> d_second) {
        dx += dy * a;  // the sinks sum over what was broadcast
        d_second += dy;
      },
      x, y);
}

TEST_CASE("10.2: a x + y") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}}, row{10, 20, 30}, column{{1}, {2}};
  check_close(axpy(2, x, row), Real(2) * x + row);
  const auto f = [](const std::vector<Tensor>& xs) { return axpy(Real(-0.5), xs[0], xs[1]); };
  check_gradients(f, {x, row});
  check_gradients(f, {column, row});
}

// The compiler says "a rule captures attributes only". At the second order the rule runs on Tensors; a captured array
// has no step, so nothing that it came from would get its part of the second derivative.
TEST_CASE("10.3: what may be captured is what can be copied byte by byte") {
  const auto with_number = [a = Real(2)](const Real x) { return a * x; };
  const auto with_array = [a = Array{1, 2}](const Real x) { return a(0) * x; };
  CHECK(with_number(3) == 6);
  CHECK(with_array(3) == 3);
  CHECK(std::is_trivially_copyable_v<decltype(with_number)>);
  CHECK(!std::is_trivially_copyable_v<decltype(with_array)>);
}
// [/10]

// [11]
TEST_CASE("11.1: sums keep nothing, products both operands") {
  const auto saved = [](const auto& op) {
    const Parameter x(ones({10}));
    Tape tape;
    Tensor y = x;
    for (int i = 0; i < 100; ++i) y = op(y, x);
    std::ostringstream table;
    tape.print(table);
    const std::string text = table.str();
    return std::stoul(text.substr(text.find("save ") + 5));  // "101 steps save N bytes"
  };
  CHECK(saved([](const Tensor& a, const Tensor& b) { return a + b; }) == 0);
  CHECK(saved([](const Tensor& a, const Tensor& b) { return a * b; }) == 100 * 2 * 10 * sizeof(Real));
}

/// (x - 1)^2 + 3x in one pass; its derivative is 2 (x - 1) + 3.
Tensor parabola(const Tensor& x) {
  const auto& v = x.value();
  return record(
      "parabola", Tensor((v - Real(1)) * (v - Real(1)) + v * Real(3)),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * (x * Real(2) + Real(1)); }, x);
}

TEST_CASE("11.2: steps of a composed op and of one") {
  const auto composed = [](const Tensor& x) { return square(x - Real(1)) + Real(3) * x; };
  const Parameter x(Tensor{1, -2, 0.5});
  {
    Tape tape;
    composed(x);
    CHECK(tape.size() == 5);  // leaf, difference, square, product, sum
  }
  {
    Tape tape;
    parabola(x);
    CHECK(tape.size() == 2);
  }
  check_close(parabola(x), composed(x));
  check_gradients([](const std::vector<Tensor>& xs) { return parabola(xs[0]); }, {x.detach()});
}

TEST_CASE("11.3: a softmax of two halves") {
  Rng rng(0);
  const Tensor row = rng.normal({8}, 0, 5), left = slice(row, 0, 0, 4), right = slice(row, 0, 4, 8);
  const Tensor m = maximum(amax(left), amax(right));
  const Tensor left_sum = sum(exp(left - amax(left))), right_sum = sum(exp(right - amax(right)));
  const Tensor total = left_sum * exp(amax(left) - m) + right_sum * exp(amax(right) - m);
  check_close(exp(row - m) / total, softmax(row, 0), kDouble ? 1e-12 : 1e-5);
}
// [/11]

// [12]
TEST_CASE("12.1: the third derivative of the sine is minus the cosine") {
  const Parameter x(Tensor(0.5));
  Tape tape;
  Tensor y = sin(x);
  for (int order = 0; order < 3; ++order) y = tape.gradient(y, {x}, {.create_graph = true})[0];
  CHECK(y.item() == Approx(-std::cos(0.5)));
}

TEST_CASE("12.2: a product with the second derivatives, without them") {
  const auto valley = [](const Tensor& p) {
    const Tensor x = slice(p, 0, 0, 1), y = slice(p, 0, 1, 2);
    return sum(square(Real(1) - x) + Real(100) * square(y - square(x)));
  };
  const Parameter p(Tensor{-1.2, 1});
  const Tensor v{0.3, -2};
  Tape tape;
  const Tensor g = tape.gradient(valley(p), {p}, {.create_graph = true})[0];
  const Tensor product = tape.gradient(sum(g * v), {p}, {.keep = true})[0];
  std::vector<Tensor> rows;
  for (std::ptrdiff_t i = 0; i < 2; ++i) {
    rows.push_back(tape.gradient(sum(slice(g, 0, i, i + 1)), {p}, {.keep = true})[0]);
  }
  check_close(product, matmul(stack(rows, 0), v), kDouble ? 1e-12 : 1e-5);
}

TEST_CASE("12.3: Newton's method doubles the digits where f'' is well behaved") {
  const auto off_after_4 = [](const auto& f) {
    double x = 2;
    for (int step = 0; step < 4; ++step) {
      const Parameter p{Tensor(x)};
      Tape tape;
      const Tensor g = tape.gradient(f(p), {p}, {.create_graph = true})[0];
      x -= g.item() / tape.gradient(g, {p})[0].item();
    }
    return std::abs(x - std::sqrt(2.0));
  };
  const double cubic = off_after_4([](const Tensor& x) { return pow(x, 3) / Real(3) - Real(2) * x; });
  const double quartic = off_after_4([](const Tensor& x) { return square(square(x) - Real(2)); });
  CHECK(cubic < (kDouble ? 1e-11 : 1e-6));  // f' = x^2 - 2, which bends little
  CHECK(quartic > 10 * cubic);              // f' = 4 x (x^2 - 2) bends more, so the first steps are shorter
}
// [/12]

// [13]
TEST_CASE("13.1: the mean of the shares' means is the batch's only where shares have the same size") {
  const auto gradient = [](const Tensor& x) {
    Parameter w(Tensor(2));
    Tape tape;
    return tape.gradient(mean(square(w * x - Real(1))), {w})[0].item();
  };
  const Tensor x{1, 5, 2, 4};
  const auto share = [&](int begin, int end) { return slice(x, 0, begin, end); };
  CHECK((gradient(share(0, 2)) + gradient(share(2, 4))) / 2 == Approx(gradient(x)));
  CHECK((gradient(share(0, 3)) + gradient(share(3, 4))) / 2 != Approx(gradient(x)));
  CHECK((3 * gradient(share(0, 3)) + gradient(share(3, 4))) / 4 == Approx(gradient(x)));
}

TEST_CASE("13.2: of twice as many rows, the gradient has half the variance") {
  Rng rng(0);
  const auto variance = [&](std::size_t rows) {  // of the gradient of mean((w - x)^2) at 0
    Parameter w(Tensor(0));
    double squares = 0;
    for (int batch = 0; batch < 4000; ++batch) {
      Tape tape;
      const double g = tape.gradient(mean(square(w - Tensor(rng.normal({rows})))), {w})[0].item();
      squares += g * g / 4000;
    }
    return squares;
  };
  CHECK(variance(8) / variance(16) == Approx(2).margin(0.3));  // so a larger learning rate may do
}
// [/13]

}  // namespace
