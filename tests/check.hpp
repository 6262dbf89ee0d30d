/// What tests of numbers share.
#pragma once

#include <cmath>
#include <limits>

#include "autograd/grad_check.hpp"
#include "autograd/ops.hpp"
#include "tests/catch.hpp"

namespace TAPEGRAD {

inline constexpr bool kDouble = std::is_same_v<Real, double>;
inline constexpr Real kInf = std::numeric_limits<Real>::infinity();
inline constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();

/// How far a value may be from the right one, relative to it: a few roundings.
inline constexpr double kTight = kDouble ? 1e-12 : 2e-6;

/// First and second order against differences; nothing in float, where differences prove nothing.
inline void check_gradients(const Function& f, const std::vector<Tensor>& inputs,
                            const GradCheckOptions& options = {}) {
  if constexpr (kDouble) {
    const GradCheckReport first = grad_check(f, inputs, options);
    INFO(first.message);
    CHECK(first.passed);
    const GradCheckReport second = grad_grad_check(f, inputs, options);
    INFO(second.message);
    CHECK(second.passed);
  }
}

/// Equal shapes, and elements that differ by at most tolerance (1 + |expected|); NaN and infinities must be the same.
inline void check_close(const Array& got, const Array& expected, double tolerance = kTight) {
  CHECK(to_text(got.shape()) == to_text(expected.shape()));
  if (got.shape() != expected.shape()) return;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = got.data()[i];
    const double b = expected.data()[i];
    const bool same = a == b || (a != a && b != b) || std::abs(a - b) <= tolerance * (1 + std::abs(b));
    if (same) continue;
    CAPTURE(i, a, b);
    CHECK(same);
    return;
  }
}
inline void check_close(const Array& got, const Tensor& expected, double tolerance = kTight) {
  check_close(got, expected.value(), tolerance);
}
inline void check_close(const Tensor& got, const Tensor& expected, double tolerance = kTight) {
  check_close(got.value(), expected.value(), tolerance);
}

/// That the call throws an Error of one line that contains the text.
template <class Call>
void check_refused(Call call, const std::string& text) {
  std::string message = "nothing was refused";
  try {
    call();
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK_THAT(message, Catch::Matchers::ContainsSubstring(text));
  CHECK(message.find('\n') == std::string::npos);
}

/// The gradients of the sum of f's output (or of its product with dy) with respect to each input.
inline std::vector<Tensor> gradients_of(const Function& f, std::vector<Tensor> inputs, const Tensor& dy = {}) {
  for (Tensor& x : inputs) x = x.detach().set_requires_grad();
  Tape tape;
  const Tensor y = f(inputs);
  return tape.gradient(y, inputs, {dy.defined() ? dy : Tensor(Array(y.shape(), Real(1)))});
}

/// The same for one input.
template <class F>
Tensor gradient_of(F f, const Tensor& x, const Tensor& dy = {}) {
  return gradients_of([&](const std::vector<Tensor>& xs) { return f(xs[0]); }, {x}, dy)[0];
}

}  // namespace TAPEGRAD
