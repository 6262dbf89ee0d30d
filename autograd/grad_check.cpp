#include "autograd/grad_check.hpp"

#include <cmath>
#include <cstdio>
#include <limits>

#include "autograd/random.hpp"
#include "autograd/tape.hpp"

namespace TAPEGRAD {
namespace {

using Tensors = std::vector<Tensor>;

/// The outputs whose derivatives are checked: f's for the first order, its gradients for the second. With `record` they
/// are recorded on the open tape.
using Outputs = std::function<Tensors(const Tensors& xs, bool record)>;

constexpr int kTries = 6;

GradCheckReport failure(const char* who, const std::string& what) {
  return {false, '[' + std::string(who) + "] " + what};
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

/// "(1,2)" for the sixth element of shape (2,3).
std::string position(std::size_t element, const Shape& shape) {
  Shape at = shape;
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) at[axis] = element % shape[axis];
  return to_text(at);
}

/// Random numbers of either sign, all different and none near 0, so that no element's gradient is lost.
Array weights(const Shape& shape, Rng& rng) {
  Array result = rng.uniform(shape, 0.5, 1.5);
  for (Real& w : result.storage()) w = rng.uniform() < 0.5 ? -w : w;
  return result;
}

double largest_magnitude(const Tensor& y) {
  double largest = 0;
  for (const Real v : y.value().storage()) largest = std::max(largest, std::abs(static_cast<double>(v)));
  return largest;
}

/// Where two arrays of equal shape, made by adding numbers as large as `cancelled`, differ by more than rounding; their
/// size when nowhere.
std::size_t first_difference(const Array& a, const Array& b, double cancelled) {
  double largest = 1e-3 * cancelled;
  for (const Real v : a.storage()) largest = std::max(largest, std::abs(static_cast<double>(v)));
  std::size_t i = 0;
  while (i < a.size() && std::abs(a.data()[i] - b.data()[i]) <= 1e-9 * std::abs(a.data()[i]) + 1e-12 * largest) ++i;
  return i;
}

/// An input moved away from where it is: `amount` times the direction, or times `scale` in one element only.
struct Move {
  std::size_t input;
  std::size_t element;
  double scale;
  const Array* direction;

  Tensor moved(const Tensor& x, double amount) const {
    Array at = x.value();
    if (direction != nullptr) {
      for (std::size_t i = 0; i < at.size(); ++i) at.data()[i] += static_cast<Real>(amount * direction->data()[i]);
    } else {
      at.data()[element] += static_cast<Real>(amount * scale);
    }
    return Tensor(std::move(at)).set_requires_grad();
  }

  double along(const Array& gradient) const {
    if (direction == nullptr) return gradient.data()[element] * scale;
    double slope = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      slope += static_cast<double>(gradient.data()[i]) * direction->data()[i];
    }
    return slope;
  }
};

struct Slope {
  double value;
  double rounding;
};

/// The derivative of sum dy y by the move, from four points: error step^4 in y's fifth derivative. Outputs are
/// subtracted before they are summed, and those that don't move add no rounding.
Slope difference(const Outputs& outputs, const Tensors& xs, const std::vector<Array>& dys, const Move& move,
                 double step) {
  Tensors at = xs;
  Tensors ys[4];
  const double amounts[4] = {step, -step, 2 * step, -2 * step};
  for (int i = 0; i < 4; ++i) {
    at[move.input] = move.moved(xs[move.input], amounts[i]);
    ys[i] = outputs(at, false);
  }
  Slope slope{0, 0};
  for (std::size_t k = 0; k < dys.size(); ++k) {
    const Real* y[4];
    for (int i = 0; i < 4; ++i) {
      require(ys[i][k].shape() == dys[k].shape(), "grad_check", "f's output must have the same shape at every point",
              ys[i][k].shape(), dys[k].shape());
      y[i] = ys[i][k].value().data();
    }
    for (std::size_t j = 0; j < dys[k].size(); ++j) {
      const double near = static_cast<double>(y[0][j]) - y[1][j];
      const double far = static_cast<double>(y[2][j]) - y[3][j];
      if (near == 0 && far == 0) continue;
      const double dy = dys[k].data()[j];
      slope.value += dy * (8 * near - far);
      slope.rounding += std::abs(dy * y[0][j]);
    }
  }
  slope.value /= 12 * step;
  slope.rounding *= 10 * std::numeric_limits<double>::epsilon() / step;
  return slope;
}

struct Check {
  const char* who;
  const Outputs& outputs;
  const Tensors& xs;
  std::size_t inputs;  // the last x of the second order is not f's input, but its output's gradient
  const GradCheckOptions& options;
  Rng& rng;
  double cancelled;  // how large f's output is: a gradient of 0 may be the difference of numbers like it

  GradCheckReport run() const;

 private:
  bool second_order() const { return inputs < xs.size(); }
  GradCheckReport compare(const Move& move, const std::vector<Array>& dys, const Array& gradient, double largest,
                          const std::string& where) const;
  GradCheckReport check_input(std::size_t input, const std::vector<Array>& dys, const Array& gradient) const;
};

GradCheckReport Check::run() const {
  std::vector<Array> dys;
  std::vector<Array> gradients;
  {
    Tape tape;
    const Tensors plain = outputs(xs, false);
    const Tensors ys = outputs(xs, true);
    for (const Tensor& x : xs) gradients.emplace_back(x.shape(), Real(0));
    for (std::size_t k = 0; k < ys.size(); ++k) {
      const Tensor& y = ys[k];
      const std::string name = second_order() ? "the gradient of input " + std::to_string(k) : "f's output";
      const Array& value = y.value();
      const Array& again = plain[k].value();
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (std::isfinite(value.data()[i])) continue;
        return failure(
            who, name + " must be finite; got " + number(value.data()[i]) + " at element " + position(i, y.shape()));
      }
      require(again.shape() == value.shape(), who, "f's output must have the same shape in every call", again.shape(),
              value.shape());
      const std::size_t i = first_difference(again, value, cancelled);
      if (i < y.size()) {
        return failure(who, name + " must be the same whether or not it is recorded; got " + number(value.data()[i]) +
                                " recorded and " + number(again.data()[i]) + " otherwise at element " +
                                position(i, y.shape()));
      }
      dys.push_back(weights(y.shape(), rng));
      if (!y.requires_grad()) continue;  // a constant, says the tape
      const Tensors dxs = tape.gradient(y, xs, {Tensor(Array(dys[k])), true});
      for (std::size_t x = 0; x < xs.size(); ++x) gradients[x].plus_assign(dxs[x].value());
    }
  }
  for (std::size_t input = 0; input < xs.size(); ++input) {
    GradCheckReport report = check_input(input, dys, gradients[input]);
    if (!report) return report;
  }
  return {true, std::string(second_order() ? "second" : "first") + " order: all gradients agree"};
}

GradCheckReport Check::check_input(std::size_t input, const std::vector<Array>& dys, const Array& gradient) const {
  const Array& x = xs[input].value();
  const std::string name = std::string(second_order() ? "second" : "first") + " order, " +
                           (input < inputs ? "input " + std::to_string(input) : "the output's gradient");
  const auto scale = [&](std::size_t i) { return std::max(1.0, std::abs(static_cast<double>(x.data()[i]))); };
  if (x.size() <= options.largest_by_element) {
    double largest = 0;
    for (const Real g : gradient.storage()) largest = std::max(largest, std::abs(static_cast<double>(g)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::string where = name + ", element " + position(i, x.shape());
      GradCheckReport report = compare({input, i, scale(i), nullptr}, dys, gradient, largest * scale(i), where);
      if (!report) return report;
    }
    return {};
  }
  for (std::size_t n = 0; n < options.directions; ++n) {
    Array direction = rng.normal(x.shape());
    double square = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      direction.data()[i] *= static_cast<Real>(scale(i));
      const double part = gradient.data()[i] * scale(i);
      square += part * part;
    }
    const std::string where = name + " of shape " + to_text(x.shape()) + ", random direction " + std::to_string(n);
    GradCheckReport report = compare({input, 0, 1, &direction}, dys, gradient, std::sqrt(square), where);
    if (!report) return report;
  }
  return {};
}

GradCheckReport Check::compare(const Move& move, const std::vector<Array>& dys, const Array& gradient, double largest,
                               const std::string& where) const {
  const double analytic = move.along(gradient);
  double best = std::numeric_limits<double>::quiet_NaN();
  double rounding = 0;
  double step = options.step;
  for (int i = 0; i < kTries; ++i, step /= 10) {
    const Slope slope = difference(outputs, xs, dys, move, step);
    if (!std::isfinite(slope.value)) continue;  // beyond a border of where f is defined
    // Rounding grows as the step shrinks; allowing for it only once keeps small steps from hiding an error.
    const double noise = 10 * std::numeric_limits<double>::epsilon() * cancelled;  // of a gradient that f's rule makes
    if (rounding == 0) rounding = slope.rounding + (second_order() ? noise / step : noise);
    const double allowed =
        options.relative * std::max(std::abs(analytic), std::abs(slope.value)) + options.absolute * largest + rounding;
    if (std::abs(analytic - slope.value) <= allowed) return {};
    if (!(std::abs(analytic - slope.value) >= std::abs(analytic - best))) best = slope.value;
  }
  if (best != best) return failure(who, where + ": f is finite there, but not beside it");
  return failure(who, where + ": analytic " + number(analytic / move.scale) + ", numeric " + number(best / move.scale));
}

/// What both orders begin with: refusals, and copies of the inputs.
Tensors prepare(const char* who, const Tensors& inputs, const GradCheckOptions& options) {
  require(std::is_same_v<Real, double>, who, "gradients are checked in double: link tapegrad::double");
  require(!inputs.empty(), who, "there must be an input");
  require(options.step > 0 && std::isfinite(options.step), who, "the step must be positive", options.step);
  require(options.directions > 0, who, "there must be a random direction", options.directions);
  require(options.relative >= 0 && options.absolute >= 0, who, "tolerances must not be negative", options.relative,
          options.absolute);
  Tensors xs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i].defined(), who, "every input must be defined; undefined is input", i);
    xs.push_back(inputs[i].detach().set_requires_grad());
  }
  return xs;
}

Tensor output(const char* who, const Function& f, const Tensors& xs) {
  const Tensor y = f(xs);
  require(y.defined(), who, "f must return a Tensor that is defined");
  return y;
}

/// Whether the tape saw y come from one of xs.
bool depends(const Tape& tape, const Tensor& y, const Tensors& xs) {
  const auto used = [&](const Tensor& x) { return x.same_as(y) || x.cell().tape == tape.id(); };
  return y.requires_grad() && std::any_of(xs.begin(), xs.end(), used);
}
constexpr const char* kIndependent = "f's output depends on no input: ops that record must make it from them";

}  // namespace

GradCheckReport grad_check(const Function& f, const Tensors& inputs, const GradCheckOptions& options) {
  const char* who = "grad_check";
  const Tensors xs = prepare(who, inputs, options);
  double cancelled = 0;
  {
    Tape tape;
    const Tensor y = output(who, f, xs);
    if (!depends(tape, y, xs)) return failure(who, kIndependent);
    cancelled = largest_magnitude(y);
  }
  const Outputs outputs = [&](const Tensors& at, bool record) -> Tensors {
    if (record) return {output(who, f, at)};
    Tape tape;  // f may itself ask the open tape for gradients
    return {output(who, f, at)};
  };
  Rng rng(options.seed);
  return Check{who, outputs, xs, xs.size(), options, rng, cancelled}.run();
}

GradCheckReport grad_grad_check(const Function& f, const Tensors& inputs, const GradCheckOptions& options) {
  const char* who = "grad_grad_check";
  Tensors xs = prepare(who, inputs, options);
  Rng rng(options.seed);
  double cancelled = 0;
  {
    Tape tape;
    const Tensor y = output(who, f, xs);
    if (!depends(tape, y, xs)) return failure(who, kIndependent);
    cancelled = largest_magnitude(y);
    xs.push_back(Tensor(weights(y.shape(), rng)).set_requires_grad());
  }
  const Outputs gradients = [&](const Tensors& at, bool record) -> Tensors {
    const Tensors x(at.begin(), at.end() - 1);
    if (record) return Tape::open()->gradient(output(who, f, x), x, {at.back(), true, true});
    Tape tape;
    return tape.gradient(output(who, f, x), x, {at.back()});
  };
  return Check{who, gradients, xs, inputs.size(), options, rng, cancelled}.run();
}

}  // namespace TAPEGRAD
