// A line through noisy points: the gradient of its squared error by hand, by tape, and then down along it.
#include <iostream>

#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::expect, examples::show, examples::text, examples::to_numbers;

// [by hand]
struct Gradient {
  double w = 0, b = 0;
};

Gradient by_hand(const Array& x, const Array& y, double w, double b) {
  Gradient gradient;
  const double n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = w * x(i) + b - y(i);
    gradient.w += 2 / n * error * x(i);
    gradient.b += 2 / n * error;
  }
  return gradient;
}
// [/by hand]

int main() {
  // [data]
  Rng rng(0);
  const Tensor x = rng.uniform({20}, 0, 5);
  const Tensor y = Real(2) * x + Real(1) + rng.normal({20}, 0, 0.5);
  // [/data]

  const Gradient known = by_hand(x.value(), y.value(), 0, 0);
  show(text("by hand:  dw = %.6f  db = %.6f", known.w, known.b));

  // [by tape]
  Parameter w(Tensor(0)), b(Tensor(0));
  {
    Tape tape;
    const Tensor line = w * x + b;
    const Tensor loss = mean(square(line - y));
    tape.print(std::cout);
    tape.backward(loss);
  }
  show(text("by tape:  dw = %.6f  db = %.6f", w.grad()(), b.grad()()));
  // [/by tape]
  expect(std::abs(w.grad()() - known.w) < 1e-12, "both agree in w");
  expect(std::abs(b.grad()() - known.b) < 1e-12, "both agree in b");

  // [descend]
  optim::SGD optimizer({w, b}, {.learning_rate = 0.05});
  for (int step = 0; step <= 200; ++step) {
    optimizer.zero_grad();
    Tape tape;
    const Tensor loss = mean(square(w * x + b - y));
    tape.backward(loss);
    if (step % 50 == 0) {
      show(text("step %3d: loss %.4f, w %.3f, b %.3f", step, loss.item(), w.item(), b.item()));
    }
    optimizer.step();
  }
  // [/descend]
  expect(std::abs(w.item() - 2) < 0.3 && std::abs(b.item() - 1) < 0.6, "the line is found again");

  const std::vector<double> ends = {0, 5};
  const double at0 = b.item(), at5 = 5 * w.item() + b.item();
  examples::Panel panel{"", "x", "y", {{"points", to_numbers(x), to_numbers(y), examples::Mark::points, 2}}, {}};
  panel.series.push_back({"found", ends, {at0, at5}, examples::Mark::line, 0});
  panel.series.push_back({"made from", ends, {1, 11}, examples::Mark::line, 1});
  examples::save(examples::Figure{"A line, found by its gradient", {panel}}, "gradient_by_hand");
}
