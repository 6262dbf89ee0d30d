#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

/// f(a, b) as a new Tensor. Equal shapes go to xtensor, which builds the value in its cell with SIMD.
template <class F>
Tensor combine(const char* op, const Tensor& a, const Tensor& b, F f) {
  if (a.shape() == b.shape()) return Tensor(f(a.value(), b.value()));
  broadcast_shape(a.shape(), b.shape(), op);  // refuses in the op's name
  return Tensor(broadcast_apply(a.value(), b.value(), f));
}

/// to += f(dy, x), broadcasting.
template <class T, class F>
void add_combined(const Sink<T>& to, const T& dy, const T& x, F f) {
  if constexpr (std::is_same_v<T, Array>) {
    if (to && dy.shape() != x.shape()) {  // xtensor walks such element by element
      to += broadcast_apply(dy, x, f);
      return;
    }
  }
  to += f(dy, x);
}

constexpr auto times = [](const auto& x, const auto& y) { return x * y; };
constexpr auto over = [](const auto& x, const auto& y) { return x / y; };

}  // namespace

Tensor operator+(const Tensor& a, const Tensor& b) {
  return record(
      "add", combine("add", a, b, [](const auto& x, const auto& y) { return x + y; }),
      []<class T>(Unread, const T& dy, Unread, Unread, Sink<T> da, Sink<T> db) {
        da += dy;
        db += dy;
      },
      a, b);
}

Tensor operator-(const Tensor& a, const Tensor& b) {
  return record(
      "sub", combine("sub", a, b, [](const auto& x, const auto& y) { return x - y; }),
      []<class T>(Unread, const T& dy, Unread, Unread, Sink<T> da, Sink<T> db) {
        da += dy;
        db += -dy;
      },
      a, b);
}

Tensor operator*(const Tensor& a, const Tensor& b) {
  return record(
      "mul", combine("mul", a, b, times),
      []<class T>(Unread, const T& dy, const T& a, const T& b, Sink<T> da, Sink<T> db) {
        add_combined(da, dy, b, times);
        add_combined(db, dy, a, times);
      },
      a, b);
}

Tensor operator/(const Tensor& a, const Tensor& b) {
  return record(
      "div", combine("div", a, b, over),
      []<class T>(const T& y, const T& dy, Unread, const T& b, Sink<T> da, Sink<T> db) {
        add_combined(da, dy, b, over);
        if (db) add_combined(db, T(-dy * y), b, over);
      },
      a, b);
}

Tensor operator-(const Tensor& x) {
  return record(
      "neg", Tensor(-x.value()), []<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += -dy; }, x);
}

Tensor operator+(const Tensor& a, Real b) {
  return record(
      "add", Tensor(a.value() + b), []<class T>(Unread, const T& dy, Unread, Sink<T> da) { da += dy; }, a);
}
Tensor operator+(Real a, const Tensor& b) { return b + a; }
Tensor operator-(const Tensor& a, Real b) { return a + -b; }
Tensor operator-(Real a, const Tensor& b) {
  return record(
      "sub", Tensor(a - b.value()), []<class T>(Unread, const T& dy, Unread, Sink<T> db) { db += -dy; }, b);
}

Tensor operator*(const Tensor& a, Real b) {
  return record(
      "mul", Tensor(a.value() * b), [b]<class T>(Unread, const T& dy, Unread, Sink<T> da) { da += dy * b; }, a);
}
Tensor operator*(Real a, const Tensor& b) { return b * a; }
Tensor operator/(const Tensor& a, Real b) {
  return record(
      "div", Tensor(a.value() / b), [b]<class T>(Unread, const T& dy, Unread, Sink<T> da) { da += dy / b; }, a);
}
Tensor operator/(Real a, const Tensor& b) {
  return record(
      "div", Tensor(a / b.value()), []<class T>(const T& y, const T& dy, const T& b, Sink<T> db) { db += -dy * y / b; },
      b);
}

Tensor maximum(const Tensor& a, const Tensor& b) {
  const auto larger = [](Real x, Real y) { return x > y || x != x ? x : y; };
  broadcast_shape(a.shape(), b.shape(), "maximum");
  return record(
      "maximum", Tensor(broadcast_apply(a.value(), b.value(), larger)),
      []<class T>(Unread, const T& dy, const T& a, const T& b, Sink<T> da, Sink<T> db) {
        const auto share = [](Real x, Real y) { return x == y ? Real(0.5) : Real(1); };
        const T shared = T(dy * T(broadcast_apply(array_of(a), array_of(b), share)));
        if (da) da += keep_where(shared, !compare(array_of(a), array_of(b), std::less<Real>()));
        if (db) db += keep_where(shared, !compare(array_of(a), array_of(b), std::greater<Real>()));
      },
      a, b);
}

Tensor minimum(const Tensor& a, const Tensor& b) { return -maximum(-a, -b); }

// ---- comparisons ----------------------------------------------------------------------------------------------------

Mask operator<(const Tensor& a, const Tensor& b) { return compare(a.value(), b.value(), std::less<Real>()); }
Mask operator<=(const Tensor& a, const Tensor& b) { return compare(a.value(), b.value(), std::less_equal<Real>()); }
Mask operator>(const Tensor& a, const Tensor& b) { return compare(a.value(), b.value(), std::greater<Real>()); }
Mask operator>=(const Tensor& a, const Tensor& b) { return compare(a.value(), b.value(), std::greater_equal<Real>()); }
Mask operator==(const Tensor& a, const Tensor& b) { return compare(a.value(), b.value(), std::equal_to<Real>()); }
Mask operator!=(const Tensor& a, const Tensor& b) { return compare(a.value(), b.value(), std::not_equal_to<Real>()); }

}  // namespace TAPEGRAD
