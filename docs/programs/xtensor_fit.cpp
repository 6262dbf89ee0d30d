// Array code that was there before, differentiated: a function of xtensor arrays, and an optimiser that knows nothing
// of tapegrad. What is added is one template parameter, and one function that returns a gradient.
#include <cmath>

#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using examples::expect, examples::show, examples::text;

namespace existing {  // ---- the code that was there

// [existing]
using xt::exp, xt::square;

/// A damped oscillation a e^(-b t) cos(c t): the model of a sensor, for arrays of times.
template <class Number, class Times>
auto oscillation(const Number& a, const Number& b, const Number& c, const Times& t) {
  return a * exp(t * b * -1.0) * cos(t * c);
}
// [/existing]

// [optimiser]
/// Somebody's optimiser: plain numbers, a gradient from wherever it comes, steps of one length along its sign.
class SignDescent {
 public:
  explicit SignDescent(std::vector<double> start) : x(std::move(start)), steps_(x.size(), 0.1), last_(x.size(), 0) {}
  void step(const std::vector<double>& gradient) {  // Rprop (Riedmiller and Braun, 1993)
    for (std::size_t i = 0; i < x.size(); ++i) {
      steps_[i] *= gradient[i] * last_[i] > 0 ? 1.2 : gradient[i] * last_[i] < 0 ? 0.5 : 1;
      x[i] -= std::copysign(steps_[i], gradient[i]);
      last_[i] = gradient[i];
    }
  }
  std::vector<double> x;

 private:
  std::vector<double> steps_, last_;
};
// [/optimiser]

}  // namespace existing

int main() {
  // [data]
  const xt::xarray<double> t = xt::arange<double>(0, 6, 0.1);
  const xt::xarray<double> measured = existing::oscillation(2.0, 0.4, 3.0, t);  // as it was always called
  // [/data]

  // [gradient]
  using namespace tapegrad;
  const Tensor times(t), target(measured);
  const auto loss_and_gradient = [&](const std::vector<double>& x) {
    const Parameter a{Tensor(x[0])}, b{Tensor(x[1])}, c{Tensor(x[2])};
    Tape tape;
    const Tensor loss = mean(square(existing::oscillation(a, b, c, times) - target));
    std::vector<double> gradient;
    for (const Tensor& g : tape.gradient(loss, {a, b, c})) gradient.push_back(g.item());
    return std::pair{static_cast<double>(loss.item()), gradient};
  };
  // [/gradient]

  // [fit]
  existing::SignDescent optimiser({1, 1, 2.5});
  for (int step = 0; step <= 150; ++step) {
    const auto [loss, gradient] = loss_and_gradient(optimiser.x);
    if (step % 30 == 0) {
      show(text("step %3d: loss %.3g, a %.4f, b %.4f, c %.4f", step, loss, optimiser.x[0], optimiser.x[1],
                optimiser.x[2]));
    }
    optimiser.step(gradient);
  }
  // [/fit]
  expect(std::abs(optimiser.x[0] - 2) < 1e-3 && std::abs(optimiser.x[1] - 0.4) < 1e-3 &&
             std::abs(optimiser.x[2] - 3) < 1e-3,
         "the sensor's numbers are found again");
}
