// Ops that a user of the library makes, from the user's own namespace.
#include "autograd/ops.hpp"
#include "tests/catch.hpp"

namespace my_physics {

using tapegrad::Array;
using tapegrad::Index;
using tapegrad::Mask;
using tapegrad::Parameter;
using tapegrad::Real;
using tapegrad::record;
using tapegrad::Saved;
using tapegrad::Sink;
using tapegrad::Tensor;
using tapegrad::Unread;

/// a b^2, elementwise, equal shapes.
Tensor drag(const Tensor& a, const Tensor& b) {
  return record(
      "drag", Tensor(a.value() * b.value() * b.value()),
      []<class T>(Unread, const T& dy, const T& a, const T& b, Sink<T> da, Sink<T> db) {
        da += dy * b * b;
        db += dy * a * b * Real(2);
      },
      a, b);
}

/// e^(rate x), which keeps only its output.
Tensor decay(const Tensor& x, Real rate) {
  return record(
      "decay", Tensor(xt::exp(x.value() * rate)),
      [rate]<class T>(const T& y, const T& dy, Unread, Sink<T> dx) { dx += dy * y * rate; }, x);
}

/// x + row: the sink sums dy down to the row's shape.
Tensor add_row(const Tensor& x, const Tensor& row) {
  return record(
      "add_row", Tensor(x.value() + row.value()),
      []<class T>(Unread, const T& dy, Unread, Unread, Sink<T> dx, Sink<T> drow) {
        dx += dy;
        drow += dy;
      },
      x, row);
}

/// The function that a rule calls on arrays and on Tensors: factor where the mask is true, else 1.
Array scaled(const Array& x, const Mask& mask, Real factor) {
  Array y = x;
  for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] *= mask.data()[i] ? factor : Real(1);
  return y;
}
Tensor scaled(const Tensor& x, const Mask& mask, Real factor) {
  return record(
      "scaled", Tensor(scaled(x.value(), mask, factor)),
      [factor]<class T>(Unread, const T& dy, Unread, const Mask& mask, Sink<T> dx) { dx += scaled(dy, mask, factor); },
      x, mask);
}

/// x[i] times weight i of a table that carries no gradient.
Tensor weighted(const Tensor& x, const Index& positions, const Array& table) {
  Array weights = x.value();
  for (std::size_t i = 0; i < weights.size(); ++i) weights.data()[i] = table(positions.data()[i]);
  const Tensor kept(std::move(weights));
  return record(
      "weighted", Tensor(x.value() * kept.value()),
      []<class T>(Unread, const T& dy, Unread, const Index&, const Saved& weights, Sink<T> dx) {
        if constexpr (std::is_same_v<T, Array>) {
          dx += dy * weights.array.value();
        } else {
          dx += dy * weights.array;
        }
      },
      x, positions, Saved{kept});
}

/// x^2 with a rule that is wrong in shape.
Tensor misshapen(const Tensor& x) {
  return record(
      "misshapen", Tensor(x.value() * x.value()),
      []<class T>(Unread, const T&, Unread, Sink<T> dx) { dx += T(Array(tapegrad::Shape{7}, Real(1))); }, x);
}

}  // namespace my_physics

using namespace my_physics;
using tapegrad::Error;
using tapegrad::Tape;
using Reals = std::vector<Real>;

namespace {

Reals elements(const Tensor& x) { return {x.value().storage().begin(), x.value().storage().end()}; }

template <class T>
concept Readable = requires(const T& v) {
  v.size();
}
|| requires(const T& v) { v[0]; }
|| requires(const T& v) { exp(v); }
|| requires(const T& v) { Tensor(v); }
|| requires(const T& v, Tensor dy) { dy* v; }
|| requires(const T& v, Sink<Array> dx) { dx += v; }
|| requires(const T& v, Sink<Tensor> dx) { dx += v; };

static_assert(Readable<Array> && Readable<Tensor>);
static_assert(!Readable<Unread>, "a value that is not kept can't be read");

}  // namespace

TEST_CASE("a user's own op has the right first and second derivatives", "[user_op]") {
  const Parameter a(Tensor{2, 3}), b(Tensor{5, 7});
  Tape tape;
  const Tensor y = sum(drag(a, b));
  CHECK(y.item() == 2 * 25 + 3 * 49);
  const auto g = tape.gradient(y, {a, b}, {.create_graph = true});
  CHECK(elements(g[0]) == Reals{25, 49});
  CHECK(elements(g[1]) == Reals{20, 42});
  const auto gb = tape.gradient(sum(g[1]), {a, b}, {.keep = true});
  CHECK(elements(gb[0]) == Reals{10, 14});
  CHECK(elements(gb[1]) == Reals{4, 6});
  tape.backward(y);
  CHECK(a.grad()(1) == 49);
  CHECK(b.grad()(1) == 42);
}

TEST_CASE("a user's op mixes with the library's", "[user_op]") {
  const Parameter x(Tensor{1, 2});
  Tape tape;
  const Tensor y = sum(decay(x * x, Real(-0.5)) * 3);
  const Tensor g = tape.gradient(y, {x}, {.create_graph = true})[0];
  const Tensor h = tape.gradient(sum(g), {x})[0];
  for (int i = 0; i < 2; ++i) {
    const double v = i + 1, e = 3 * std::exp(-0.5 * v * v);
    CHECK(g.value()(i) == Approx(-v * e));
    CHECK(h.value()(i) == Approx((v * v - 1) * e));
  }
}

TEST_CASE("a user's op undoes broadcasting through its sink", "[user_op]") {
  const Parameter x(Tensor{{1, 2}, {3, 4}}), row(Tensor{10, 20});
  Tape tape;
  const Tensor y = add_row(x, row);
  const auto g = tape.gradient(sum(y * y), {row, x}, {.create_graph = true});
  CHECK(elements(g[0]) == Reals{48, 92});
  CHECK(elements(g[1]) == Reals{22, 44, 26, 48});
  CHECK(elements(tape.gradient(sum(g[0]), {row})[0]) == Reals{4, 4});
}

TEST_CASE("masks, indices and saved arrays reach a user's rule", "[user_op]") {
  const Parameter x(Tensor{1, 2, 3});
  Tape tape;
  const Tensor y = scaled(x * x, Mask{true, false, true}, 10);
  CHECK(elements(y) == Reals{10, 4, 90});
  const Tensor z = weighted(y, Index{2, 0, 2}, Array{5, 6, 7});
  CHECK(elements(z) == Reals{70, 20, 630});
  const Tensor g = tape.gradient(sum(z), {x}, {.create_graph = true})[0];
  CHECK(elements(g) == Reals{140, 20, 420});
  CHECK(elements(tape.gradient(sum(g), {x})[0]) == Reals{140, 10, 140});
}

TEST_CASE("a saved array that is changed is noticed", "[user_op]") {
  const Parameter x(Tensor{1, 2});
  Tensor table{3, 4};
  Tape tape;
  const Tensor y = record(
      "table", Tensor(x.value() * table.value()),
      []<class T>(Unread, const T& dy, Unread, const Saved& table, Sink<T> dx) { dx += dy * T(table.array.value()); },
      x, Saved{table});
  table.mutable_value()(0) = 0;
  CHECK_THROWS_WITH(tape.backward(sum(y)),
                    Catch::Matchers::ContainsSubstring("[table] a value that backward needs was changed in place"));
}

TEST_CASE("gradients that nobody wants are not computed", "[user_op]") {
  static int computed;
  computed = 0;
  const auto slow_square = [](const Tensor& x) {
    return record(
        "slow_square", Tensor(x.value() * x.value()),
        []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
          if (!dx) return;
          ++computed;
          dx += dy * x * Real(2);
        },
        x);
  };
  const Parameter x(Tensor{1, 2}), w(Tensor{3, 4});
  Tape tape;
  const Tensor y = sum(slow_square(x) * slow_square(w));
  CHECK(elements(tape.gradient(y, {w}, {.keep = true})[0]) == Reals{6, 32});
  CHECK(computed == 1);
  tape.backward(y);
  CHECK(computed == 3);
}

TEST_CASE("a rule whose gradient has a wrong shape is refused", "[user_op]") {
  const Parameter x(Tensor{1, 2});
  Tape tape;
  const char* rule = "[misshapen] the rule's gradient of an operand from 'leaf' must have the operand's shape";
  CHECK_THROWS_WITH(tape.backward(sum(misshapen(x))),
                    Catch::Matchers::ContainsSubstring(rule) && Catch::Matchers::ContainsSubstring("got (7) and (2)"));
  CHECK_FALSE(x.has_grad());
  CHECK_THROWS_WITH(tape.gradient(sum(misshapen(x)), {x}, {.create_graph = true}),
                    Catch::Matchers::ContainsSubstring(rule));
  tape.backward(sum(x * x));
  CHECK(x.grad()(1) == 4);
}

TEST_CASE("a rule that computes with recorded Tensors adds no steps to the pass", "[user_op]") {
  const Parameter x(Tensor{1, 2}), other(Tensor{3, 4});
  Tape tape;
  const Tensor y = record(
      "borrowing", Tensor(x.value() * other.value()),
      []<class T>(Unread, const T& dy, Unread, const Saved& other, Sink<T> dx) {
        if constexpr (std::is_same_v<T, Array>) {
          Tensor factor = other.array;
          for (int i = 0; i < 1000; ++i) factor = factor * 1;
          dx += dy * factor.value();
        } else {
          dx += dy * other.array;
        }
      },
      x, Saved{other});
  tape.backward(sum(y));
  CHECK(elements(Tensor(x.grad())) == Reals{3, 4});
}

TEST_CASE("without a tape a user's op only computes", "[user_op]") {
  const Parameter x(Tensor{1, 2});
  CHECK(elements(drag(x, x)) == Reals{1, 8});
  CHECK_FALSE(drag(x, x).requires_grad());
}
