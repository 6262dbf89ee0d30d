#include <array>
#include <functional>

#include "autograd/random.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

using Unary = Tensor (*)(const Tensor&);
struct UnaryCase {
  const char* name;
  Unary op;
  double (*plain)(double);
  double (*slope)(double);
  double low, high;  // where it is checked
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double phi(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }
double cdf(double x) { return std::erfc(-x / std::sqrt(2)) / 2; }
double gelu_tanh_of(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

const UnaryCase kUnary[] = {
    {"exp", exp, std::exp, std::exp, -3, 3},
    {"log", log, std::log, [](double x) { return 1 / x; }, 0.2, 4},
    {"log1p", log1p, std::log1p, [](double x) { return 1 / (1 + x); }, -0.7, 3},
    {"sqrt", sqrt, std::sqrt, [](double x) { return 0.5 / std::sqrt(x); }, 0.2, 4},
    {"square", square, [](double x) { return x * x; }, [](double x) { return 2 * x; }, -3, 3},
    {"abs", abs, std::fabs, [](double x) { return x > 0 ? 1.0 : -1.0; }, -3, 3},
    {"sign", sign, [](double x) { return x > 0 ? 1.0 : -1.0; }, [](double) { return 0.0; }, -3, 3},
    {"sin", sin, std::sin, std::cos, -6, 6},
    {"cos", cos, std::cos, [](double x) { return -std::sin(x); }, -6, 6},
    {"tanh", tanh, std::tanh, [](double x) { return 1 / std::pow(std::cosh(x), 2); }, -3, 3},
    {"sigmoid", sigmoid, sigmoid_of, [](double x) { return sigmoid_of(x) * sigmoid_of(-x); }, -5, 5},
    {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }, sigmoid_of, -5, 5},
    {"silu", silu, [](double x) { return x * sigmoid_of(x); },
     [](double x) { return sigmoid_of(x) * (1 + x * sigmoid_of(-x)); }, -5, 5},
    {"relu", relu, [](double x) { return std::max(x, 0.0); }, [](double x) { return x > 0 ? 1.0 : 0.0; }, -3, 3},
    {"erf", erf, std::erf, [](double x) { return 2 / std::sqrt(M_PI) * std::exp(-x * x); }, -3, 3},
    {"gelu", gelu, [](double x) { return x * cdf(x); }, [](double x) { return cdf(x) + x * phi(x); }, -4, 4},
    {"gelu_tanh", gelu_tanh, gelu_tanh_of,
     [](double x) { return (gelu_tanh_of(x + 1e-5) - gelu_tanh_of(x - 1e-5)) / 2e-5; }, -4, 4},
    {"clamp", [](const Tensor& x) { return clamp(x, -1, 2); }, [](double x) { return std::clamp(x, -1.0, 2.0); },
     [](double x) { return x >= -1 && x <= 2 ? 1.0 : 0.0; }, -3, 4},
};

}  // namespace

TEST_CASE("pointwise ops give the plain formula's values and slopes, and differentiate twice") {
  Rng rng(1);
  for (const UnaryCase& c : kUnary) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{37}, Shape{3, 5}, Shape{2, 1, 3}, Shape{0, 2}}) {
      CAPTURE(c.name, to_text(shape));
      const Tensor x(rng.uniform(shape, c.low, c.high));
      Array values = x.value();
      Array slopes = x.value();
      for (Real& v : values.storage()) v = static_cast<Real>(c.plain(v));
      for (Real& v : slopes.storage()) v = static_cast<Real>(c.slope(v));
      const bool by_difference = c.name == std::string("gelu_tanh");
      check_close(c.op(x).value(), values);
      check_close(gradient_of(c.op, x).value(), slopes, by_difference ? 1e-6 : 2 * kTight);
      check_gradients([&](const auto& xs) { return c.op(xs[0]); }, {x});
    }
  }
}

TEST_CASE("tanh and exp differentiate three times") {
  // The first derivative, recorded, is checked to second order.
  const auto first_of = [](Unary op) {
    return Function([op](const std::vector<Tensor>& x) {
      const Tensor seed(Array(x[0].shape(), Real(1)));
      return Tape::open()->gradient(op(x[0]), x, {seed, true, true})[0];
    });
  };
  const Tensor x{{-1.5, -0.3}, {0.2, 1.1}};
  for (Unary op : std::array<Unary, 6>{tanh, exp, sigmoid, softplus, gelu, sin}) check_gradients(first_of(op), {x});
}

TEST_CASE("slopes at the singular points") {
  const Tensor x{-1, -0.0, 0, 2};
  check_close(gradient_of(Unary(abs), x), Tensor{-1, 0, 0, 1});
  check_close(gradient_of(Unary(relu), x), Tensor{0, 0, 0, 1});
  check_close(gradient_of(Unary(sqrt), Tensor{0, 4}), Tensor{kInf, 0.25});
  check_close(gradient_of([](const Tensor& v) { return clamp(v, -1, 2); }, x), Tensor{0, 1, 1, 0});
  check_close(gradient_of(Unary(sign), x), Tensor{0, 0, 0, 0});
  check_close(sign(Tensor{-3, 0, 5, kNaN}), Tensor{-1, 0, 1, kNaN});
  check_close(log(Tensor{0, -1}), Tensor{-kInf, kNaN});
}

TEST_CASE("an infinite gradient meets no 0 that would make it NaN") {
  const Tensor dy{kInf, kInf, kInf};
  const Tensor x{-1, 0, 3};
  check_close(gradient_of(Unary(relu), x, dy), Tensor{0, 0, kInf});
  check_close(gradient_of(Unary(abs), x, dy), Tensor{-kInf, 0, kInf});
  check_close(gradient_of([](const Tensor& v) { return clamp(v, -0.5, 1); }, x, dy), Tensor{0, kInf, 0});
  check_close(gradient_of(Unary(sign), x, dy), Tensor{0, 0, 0});
}

TEST_CASE("NaN goes through every pointwise op, and infinities where there is a limit") {
  for (const UnaryCase& c : kUnary) {
    CAPTURE(c.name);
    const Tensor y = c.op(Tensor{1, kNaN, 1, 1, 1, 1, 1, 1, 1});
    CHECK(std::isnan(y.value()(1)));
    CHECK_FALSE(std::isnan(y.value()(0)));
  }
  const Tensor ends{kInf, -kInf};
  check_close(relu(ends), Tensor{kInf, 0});
  check_close(exp(ends), Tensor{kInf, 0});
  check_close(tanh(ends), Tensor{1, -1});
  check_close(sigmoid(ends), Tensor{1, 0});
  check_close(softplus(ends), Tensor{kInf, 0});
  check_close(erf(ends), Tensor{1, -1});
  check_close(clamp(ends, -1, 2), Tensor{2, -1});
  check_close(abs(ends), Tensor{kInf, kInf});
}

TEST_CASE("far tails keep their relative accuracy") {
  for (double x : {-3.0, -5.0, -8.0}) {
    CAPTURE(x);
    const double value = x * cdf(x);
    const double slope = cdf(x) + x * phi(x);
    CHECK(gelu(Tensor(x)).item() == Approx(value).epsilon(kDouble ? 1e-12 : 1e-5));
    CHECK(gradient_of(Unary(gelu), Tensor(x)).item() == Approx(slope).epsilon(kDouble ? 1e-11 : 1e-4));
  }
  for (Unary op : {Unary(gelu), Unary(gelu_tanh), Unary(silu), Unary(softplus)}) {
    check_close(op(Tensor{-500, 500, -1e4, 1e4}), Tensor{0, 500, 0, 1e4});
    check_close(gradient_of(op, Tensor{-500, 500, -1e4, 1e4}), Tensor{0, 1, 0, 1});
  }
  check_close(softplus(Tensor{-40}) * Real(std::exp(40.0)), Tensor{1}, 4 * kTight);
  check_close(log1p(Tensor{1e-12}) * Real(1e12), Tensor{1}, 4 * kTight);
  check_close(sigmoid(Tensor{-80}) * Real(std::exp(80.0)), Tensor{1}, 40 * kTight);
}

TEST_CASE("clamp refuses limits in the wrong order") {
  check_refused([] { clamp(Tensor{1}, 2, 1); }, "[clamp] low must be at most high; got 2 and 1");
  check_refused([] { clamp(Tensor{1}, kNaN, 1); }, "[clamp] low must be at most high");
  check_refused([] { exp(Tensor()); }, "undefined Tensor");
}

TEST_CASE("slopes of the smooth units stay finite far out, to the third order") {
  const Tensor x{-1000, -100, 100, 1000};
  const auto bce = [](const Tensor& v) { return binary_cross_entropy_with_logits(v, ones({4}), Reduction::sum); };
  const Real ones_above[] = {0, 0, 1, 1};
  for (const auto& [f, shift] : std::vector<std::pair<std::function<Tensor(const Tensor&)>, Real>>{
           {[](const Tensor& v) { return softplus(v); }, 0}, {[](const Tensor& v) { return silu(v); }, 0}, {bce, -1}}) {
    Tape tape;
    Tensor v = x.detach().set_requires_grad();
    Tensor y = f(v);
    for (int order = 1; order <= 3; ++order) {
      y = tape.gradient(y, {v}, {Tensor(Array(y.shape(), Real(1))), true, true})[0];
      CAPTURE(order);
      for (std::size_t i = 0; i < 4; ++i) {
        const Real right = order == 1 ? ones_above[i] + shift : Real(0);
        CHECK(std::abs(y.value().data()[i] - right) < 1e-6);
      }
    }
  }
}

TEST_CASE("gelu_tanh's slope is 0 or 1 where cubes overflow") {
  const Tensor x{Real(-1e20), Real(-1e14), Real(1e14), Real(1e20)};
  check_close(gelu_tanh(x) / x, Tensor{0, 0, 1, 1});
  check_close(gradient_of(gelu_tanh, x), Tensor{0, 0, 1, 1});
}

TEST_CASE("gelu is within 5 units of the last place of the exact one, and within 6 in its tail") {
  constexpr std::size_t kCount = 40001;  // no multiple of a batch
  Array x = empty_array(Shape{kCount});
  for (std::size_t i = 0; i < kCount; ++i) x.data()[i] = static_cast<Real>(-12 + 24.0 * i / (kCount - 1));
  const Array y = gelu(Tensor(Array(x))).value();
  const Array slopes = gradient_of(Unary(gelu), Tensor(Array(x))).value();
  double worst = 0, worst_in_tail = 0, worst_slope = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double v = x.data()[i];
    const double exact = v * cdf(v);
    const double slope = cdf(v) + v * phi(v);
    const auto unit = [](double at) {
      const auto real = static_cast<Real>(std::abs(at));
      return static_cast<double>(std::nextafter(real, kInf) - real);
    };
    double& of_part = v < -4 ? worst_in_tail : worst;
    of_part = std::max(of_part, std::abs(y.data()[i] - exact) / unit(exact));
    worst_slope = std::max(worst_slope, std::abs(slopes.data()[i] - slope) / unit(1));
  }
#ifdef __FMA__
  constexpr int kMore = 0;
#else
  constexpr int kMore = 1;  // without fused multiply-adds
#endif
  CHECK(worst <= 5 + kMore);
  CHECK(worst_in_tail <= (kDouble ? 40 : 6) + kMore);  // double rounds the square, which e magnifies
  CHECK(worst_slope <= 4);
}

TEST_CASE("gelu passes infinities and NaN on, in any place of a batch") {
  for (std::size_t n : {1, 3, 16, 17, 40}) {
    Array x(Shape{n}, Real(0.5));
    x.data()[n - 1] = kNaN;
    x.data()[0] = n > 1 ? kInf : kNaN;
    const Array y = gelu(Tensor(x)).value();
    CHECK(std::isnan(y.data()[n - 1]));
    if (n > 1) CHECK(y.data()[0] == kInf);
    for (std::size_t i = 1; i + 1 < n; ++i) CHECK(y.data()[i] == Approx(0.5 * cdf(0.5)));
  }
}
