// Rules that are wrong, and how each is caught; then why a difference has to be taken with the right step.
#include <cmath>

#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::expect, examples::show, examples::text;

// [rules]
/// A sine whose gradient is what the rule says, right or wrong.
template <class Rule>
Tensor sine(const Tensor& x, Rule rule) {
  return record("sine", Tensor(xt::sin(x.value())), rule, x);
}

constexpr auto right = []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * cos(x); };
constexpr auto sign_lost = []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * cos(x) * Real(-1); };
constexpr auto bit_off = []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * cos(x) * Real(1.001); };
constexpr auto dy_lost = []<class T>(Unread, const T&, const T& x, Sink<T> dx) { dx += cos(x); };
// [/rules]

// [frozen]
/// The first derivative is right. The second is not: cos x is handed over as a constant, and no longer knows of x.
Tensor frozen_sine(const Tensor& x) {
  return record(
      "frozen_sine", Tensor(xt::sin(x.value())),
      []<class T>(Unread, const T& dy, Unread, const Saved& cosine, Sink<T> dx) {
        if constexpr (std::is_same_v<T, Array>) {
          dx += dy * cosine.array.value();
        } else {
          dx += dy * cosine.array;
        }
      },
      x, Saved{Tensor(xt::cos(x.value()))});
}
// [/frozen]

/// How far a difference quotient of sin at 1 is from cos 1, by its step.
void draw_differences() {
  examples::Panel panel{"", "step h", "error", {}, {}, true, true};
  examples::Series forward{"(f(x+h) - f(x)) / h", {}, {}}, central{"(f(x+h) - f(x-h)) / 2h", {}, {}};
  const double known = std::cos(1.0);
  for (int tenth = 0; tenth <= 150; ++tenth) {
    const double h = std::pow(10, -tenth / 10.0), up = std::sin(1 + h), down = std::sin(1 - h);
    const auto put = [&](examples::Series& series, double quotient) {
      series.x.push_back(h);
      series.y.push_back(std::max(std::abs(quotient - known), 1e-16));
    };
    put(forward, (up - std::sin(1.0)) / h);
    put(central, (up - down) / (2 * h));
  }
  panel.series = {forward, central};
  examples::save(examples::Figure{"A difference quotient in double, against the derivative", {panel}},
                 "checking_gradients");
}

int main() {
  // [check]
  const std::vector<Tensor> inputs = {Tensor{0.3, 1.1, -2}};
  const auto check = [&](const char* name, const auto& f) {
    const GradCheckReport first = grad_check(f, inputs), second = grad_grad_check(f, inputs);
    show(text("%s\n  first:  %s\n  second: %s", name, first.message.c_str(), second.message.c_str()));
    return first.passed && second.passed;
  };
  const bool passed = check("right", [](const auto& xs) { return sine(xs[0], right); });
  const bool caught = !check("sign lost", [](const auto& xs) { return sine(xs[0], sign_lost); }) &&
                      !check("0.1 % off", [](const auto& xs) { return sine(xs[0], bit_off); }) &&
                      !check("dy lost", [](const auto& xs) { return sine(xs[0], dy_lost); }) &&
                      !check("frozen", [](const auto& xs) { return frozen_sine(xs[0]); });
  // [/check]
  expect(passed, "the right rule passes");
  expect(caught, "every wrong rule is caught");
  draw_differences();
}
