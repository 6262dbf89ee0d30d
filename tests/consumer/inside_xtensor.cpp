// Gradients inside a program that lives in xtensor: its function and its optimiser stay as they are; the gradient
// between them comes from a tape.
#include <cmath>
#include <cstdio>
#include <tapegrad/tapegrad.hpp>

using Numbers = xt::xarray<double>;

// ---- what was there before ------------------------------------------------------------------------------------------

/// Minus the log-likelihood of a logistic regression, with a penalty: x (n,d), labels y (n) of -1 and 1, weights w (d).
/// It is a template and calls `sum`, `log` and `exp` by their plain names, so that it takes any kind of array.
template <class A>
auto loss(const A& x, const A& y, const A& w) {
  return sum(log(1.0 + exp(-y * sum(x * w, {1})))) + 0.5 * sum(w * w);
}

/// Gradient descent whose step is halved until the loss falls by enough (Armijo), then doubled for the next.
/// `f(w)` is the loss, `gradient(w)` its gradient. Returns the number of steps.
template <class F, class G>
int minimise(F f, G gradient, Numbers& w) {
  double step = 1;
  for (int count = 0; count < 1000; ++count) {
    const Numbers g = gradient(w);
    const double slope = xt::sum(g * g)();
    if (slope < 1e-18) return count;
    const double now = f(w);
    Numbers next = w - step * g;
    while (f(next) > now - 0.5 * step * slope) {
      step /= 2;
      if (step < 1e-12) return count;  // no number lies lower
      next = w - step * g;
    }
    w = next;
    step *= 2;
  }
  return 1000;
}

// ---- what is new ----------------------------------------------------------------------------------------------------

/// d loss / d w.
Numbers gradient_of_loss(const Numbers& x, const Numbers& y, const Numbers& w) {
  using namespace tapegrad;
  Parameter leaf{Tensor(w)};
  Tape tape;
  tape.backward(loss<Tensor>(x, y, leaf));
  return leaf.grad();
}

// ---- the program ----------------------------------------------------------------------------------------------------

int main() {
  const std::size_t n = 200, d = 3;
  tapegrad::Rng rng(0);
  const Numbers x = rng.normal({n, d}), noise = rng.uniform({n});
  const Numbers truth{2.0, -1.0, 0.5};
  const Numbers chance = 1.0 / (1.0 + xt::exp(-xt::sum(x * truth, {1})));
  const Numbers y = xt::where(noise < chance, 1.0, -1.0);

  const auto f = [&](const Numbers& w) { return loss<Numbers>(x, y, w)(); };
  const auto gradient = [&](const Numbers& w) { return gradient_of_loss(x, y, w); };

  Numbers w = xt::zeros<double>({d});
  const Numbers g = gradient(w);
  double error = 0;
  for (std::size_t i = 0; i < d; ++i) {  // is it the gradient?
    Numbers up = w, down = w;
    up(i) += 1e-5;
    down(i) -= 1e-5;
    error = std::max(error, std::abs((f(up) - f(down)) / 2e-5 - g(i)));
  }
  std::printf("gradient at 0: %.3f %.3f %.3f; off finite differences by %.1e\n", g(0), g(1), g(2), error);

  const double before = f(w);
  const int steps = minimise(f, gradient, w);
  const double left = std::sqrt(xt::sum(xt::square(gradient(w)))());
  std::printf("loss %.3f, after %d steps %.3f; gradient's norm %.1e\n", before, steps, f(w), left);
  std::printf("weights %.2f %.2f %.2f, drawn with %.2f %.2f %.2f\n", w(0), w(1), w(2), truth(0), truth(1), truth(2));
  const bool near = xt::amax(xt::abs(w - truth))() < 0.5;
  return error < 1e-6 && left < 1e-6 && near ? 0 : 1;
}
