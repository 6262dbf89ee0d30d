#include <cmath>
#include <numbers>

#include "autograd/rules.hpp"

namespace TAPEGRAD {

namespace {

constexpr Real kTwoOverSqrtPi = static_cast<Real>(2 * std::numbers::inv_sqrtpi);
constexpr Real kInvSqrtTwoPi = static_cast<Real>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
constexpr Real kSqrtTwoOverPi = static_cast<Real>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
constexpr Real kGeluCubic = static_cast<Real>(0.044715);

/// f(x) elementwise, for what xtensor has no function for.
template <class F>
Array map(const Array& x, F f) {
  Array y = empty_array(x.shape());
  std::transform(x.storage().begin(), x.storage().end(), y.storage().begin(), f);
  return y;
}

Real sign_of(Real v) { return v > 0 ? Real(1) : v < 0 ? Real(-1) : v != v ? v : Real(0); }

}  // namespace

Tensor exp(const Tensor& x) {
  return record(
      "exp", Tensor(xt::exp(x.value())), []<class T>(const T& y, const T& dy, Unread, Sink<T> dx) { dx += dy * y; }, x);
}

Tensor log(const Tensor& x) {
  return record(
      "log", Tensor(xt::log(x.value())), []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy / x; }, x);
}

Tensor log1p(const Tensor& x) {
  return record(
      "log1p", Tensor(xt::log1p(x.value())),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy / (x + Real(1)); }, x);
}

Tensor sqrt(const Tensor& x) {
  return record(
      "sqrt", Tensor(xt::sqrt(x.value())),
      []<class T>(const T& y, const T& dy, Unread, Sink<T> dx) { dx += dy * Real(0.5) / y; }, x);
}

Tensor square(const Tensor& x) {
  return record(
      "square", Tensor(x.value() * x.value()),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * x * Real(2); }, x);
}

Tensor sign(const Tensor& x) {
  return record(
      "sign", Tensor(map(x.value(), sign_of)),
      []<class T>(Unread, const T&, Unread, Sink<T> dx) {
        if (dx) dx += T(Array(dx.shape(), Real(0)));
      },
      x);
}

Tensor abs(const Tensor& x) {
  return record(
      "abs", Tensor(xt::abs(x.value())),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
        const Mask moves = mask_where(array_of(x), [](Real v) { return v != 0; });
        dx += keep_where(T(dy * T(map(array_of(x), sign_of))), moves);  // 0 at 0, even for an infinite dy
      },
      x);
}

Tensor sin(const Tensor& x) {
  return record(
      "sin", Tensor(xt::sin(x.value())),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * cos(x); }, x);
}

Tensor cos(const Tensor& x) {
  return record(
      "cos", Tensor(xt::cos(x.value())),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += -dy * sin(x); }, x);
}

Tensor tanh(const Tensor& x) {
  return record(
      "tanh", Tensor(xt::tanh(x.value())),
      []<class T>(const T& y, const T& dy, Unread, Sink<T> dx) { dx += dy * (Real(1) - y * y); }, x);
}

Array sigmoid(const Array& x) { return Real(1) / (Real(1) + xt::exp(-x)); }

Tensor sigmoid(const Tensor& x) {
  return record(
      "sigmoid", Tensor(sigmoid(x.value())),
      []<class T>(const T& y, const T& dy, Unread, Sink<T> dx) { dx += dy * (y * (Real(1) - y)); }, x);
}

Tensor softplus(const Tensor& x) {
  const auto value = [](Real v) { return (v > 0 ? v : v != v ? v : Real(0)) + std::log1p(std::exp(-std::abs(v))); };
  return record(
      "softplus", Tensor(map(x.value(), value)),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * sigmoid(x); }, x);
}

Tensor silu(const Tensor& x) {
  return record(
      "silu", Tensor(x.value() / (Real(1) + xt::exp(-x.value()))),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
        const T s = sigmoid(x);
        dx += dy * (s * (Real(1) + x * (Real(1) - s)));
      },
      x);
}

Tensor relu(const Tensor& x) {
  return record(
      "relu", Tensor(map(x.value(), [](Real v) { return v < 0 ? Real(0) : v; })),
      []<class T>(const T& y, const T& dy, Unread, Sink<T> dx) {
        dx += keep_where(dy, mask_where(array_of(y), [](Real v) { return v != 0; }));
      },
      x);
}

Tensor clamp(const Tensor& x, Real low, Real high) {
  require(low <= high, "clamp", "low must be at most high", low, high);
  return record(
      "clamp", Tensor(map(x.value(), [=](Real v) { return v < low    ? low
                                                          : v > high ? high
                                                                     : v; })),
      [low, high]<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
        dx += keep_where(dy, mask_where(array_of(x), [=](Real v) { return v > low && v < high; }));
      },
      x);
}

Tensor erf(const Tensor& x) {
  return record(
      "erf", Tensor(map(x.value(), [](Real v) { return std::erf(v); })),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * exp(-x * x) * kTwoOverSqrtPi; }, x);
}

namespace {

Tensor normal_cdf(const Tensor& x) {
  return record(
      "normal_cdf", Tensor(normal_cdf(x.value())),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) { dx += dy * exp(x * x * Real(-0.5)) * kInvSqrtTwoPi; },
      x);
}

Tensor gelu_backward(const Tensor& dy, const Tensor& x) {
  return dy * (normal_cdf(x) + x * exp(x * x * Real(-0.5)) * kInvSqrtTwoPi);
}

}  // namespace

Tensor gelu(const Tensor& x) {
  return record(
      "gelu", Tensor(gelu_values(x.value())),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
        if (dx) dx += gelu_backward(dy, x);
      },
      x);
}

namespace {

/// Beyond this gelu_tanh's tanh is 1 to the last bit, so that its slope no longer depends on x, whose cube may
/// overflow.
constexpr Real kSaturated = 10;
Array saturated(const Array& x) {
  return map(x, [](Real v) { return v < -kSaturated ? -kSaturated : v > kSaturated ? kSaturated : v; });
}
Tensor saturated(const Tensor& x) { return clamp(x, -kSaturated, kSaturated); }

}  // namespace

Tensor gelu_tanh(const Tensor& x) {
  return record(
      "gelu_tanh",
      Tensor(x.value() * Real(0.5) *
             (Real(1) + xt::tanh(kSqrtTwoOverPi * (x.value() + kGeluCubic * x.value() * x.value() * x.value())))),
      []<class T>(Unread, const T& dy, const T& far, Sink<T> dx) {
        const T x = saturated(far);
        const T t = tanh((x + x * x * x * kGeluCubic) * kSqrtTwoOverPi);
        const T slope = (x * x * (3 * kGeluCubic) + Real(1)) * kSqrtTwoOverPi;
        dx += dy * ((t + Real(1)) * Real(0.5) + x * (Real(1) - t * t) * slope * Real(0.5));
      },
      x);
}

// ---- powers ---------------------------------------------------------------------------------------------------------

namespace {

/// a^b with b fixed: std::pow, but by multiplication where that is exact.
Array power(const Array& a, Real b) {
  if (b == 0) return Array(a.shape(), Real(1));
  if (b == 1) return a;
  if (b == 2) return a * a;
  if (b == 3) return a * a * a;
  if (b == -1) return Real(1) / a;
  if (b == Real(0.5)) return xt::sqrt(a);
  return map(a, [b](Real v) { return std::pow(v, b); });
}
Tensor power(const Tensor& a, Real b) { return pow(a, b); }

/// b a^(b-1), exactly 0 for b = 0 whatever a is.
Array power_slope(const Array& a, const Array& b) {
  return broadcast_apply(a, b, [](Real x, Real y) { return y == 0 ? Real(0) : y * std::pow(x, y - 1); });
}
Tensor power_slope(const Tensor& a, const Tensor& b) {
  // At 0^0 the factor b would meet an infinity; elsewhere its own derivative a^(b-1) counts, even where b is 0.
  const Mask origin = compare(a.value(), b.value(), [](Real x, Real y) { return x == 0 && y == 0; });
  return where(origin, Tensor(0), b * pow(where(origin, Tensor(1), a), b - Real(1)));
}

/// a^b log a, with its limit 0 at a = 0 for b >= 0.
Array power_log(const Array& a, const Array& b) {
  return broadcast_apply(a, b,
                         [](Real x, Real y) { return x == 0 && y >= 0 ? Real(0) : std::pow(x, y) * std::log(x); });
}
Tensor power_log(const Tensor& a, const Tensor& b) {
  const auto at_limit = [](Real x, Real y) { return x == 0 && y >= 0; };
  const Mask limit = compare(a.value(), b.value(), at_limit);
  const Tensor inside = where(limit, Tensor(1), a);
  return where(limit, Tensor(0), pow(inside, b) * log(inside));
}

}  // namespace

Tensor pow(const Tensor& a, Real exponent) {
  return record(
      "pow", Tensor(power(a.value(), exponent)),
      [exponent]<class T>(Unread, const T& dy, const T& a, Sink<T> da) {
        if (exponent == 0) {
          if (da) da += T(Array(da.shape(), Real(0)));
        } else {
          da += dy * power(a, exponent - 1) * exponent;
        }
      },
      a);
}

Tensor pow(const Tensor& a, const Tensor& b) {
  broadcast_shape(a.shape(), b.shape(), "pow");
  return record(
      "pow", Tensor(broadcast_apply(a.value(), b.value(), [](Real x, Real y) { return std::pow(x, y); })),
      []<class T>(Unread, const T& dy, const T& a, const T& b, Sink<T> da, Sink<T> db) {
        if (da) da += dy * power_slope(a, b);
        if (db) db += dy * power_log(a, b);
      },
      a, b);
}

}  // namespace TAPEGRAD
