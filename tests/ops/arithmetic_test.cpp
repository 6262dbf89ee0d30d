#include "autograd/random.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

/// Shapes of two operands, and of what they broadcast to.
const Shape kShapes[][3] = {
    {{}, {}, {}},
    {{3}, {3}, {3}},
    {{2, 3}, {2, 3}, {2, 3}},
    {{3, 1}, {1, 4}, {3, 4}},
    {{3}, {2, 3}, {2, 3}},
    {{}, {2, 3}, {2, 3}},
    {{2, 3}, {}, {2, 3}},
    {{2, 1, 3}, {4, 1}, {2, 4, 3}},
    {{1}, {1, 1}, {1, 1}},
    {{2, 3, 1}, {3}, {2, 3, 3}},
    {{2, 2, 1, 3}, {2, 4, 1}, {2, 2, 4, 3}},
    {{0, 3}, {3}, {0, 3}},
    {{0}, {1}, {0}},
    {{1, 4}, {3, 1}, {3, 4}},
};

using Binary = Tensor (*)(const Tensor&, const Tensor&);
struct BinaryCase {
  const char* name;
  Binary op;
  double (*plain)(double, double);
  double low;  // operands are uniform on [low, low + 2)
};
const BinaryCase kBinary[] = {
    {"add", [](const Tensor& a, const Tensor& b) { return a + b; }, [](double a, double b) { return a + b; }, -1},
    {"sub", [](const Tensor& a, const Tensor& b) { return a - b; }, [](double a, double b) { return a - b; }, -1},
    {"mul", [](const Tensor& a, const Tensor& b) { return a * b; }, [](double a, double b) { return a * b; }, -1},
    {"div", [](const Tensor& a, const Tensor& b) { return a / b; }, [](double a, double b) { return a / b; }, 0.5},
    {"pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
     [](double a, double b) { return std::pow(a, b); }, 0.5},
    {"maximum", [](const Tensor& a, const Tensor& b) { return maximum(a, b); },
     [](double a, double b) { return std::max(a, b); }, -1},
    {"minimum", [](const Tensor& a, const Tensor& b) { return minimum(a, b); },
     [](double a, double b) { return std::min(a, b); }, -1},
};

/// The element of x that broadcasting puts at a position of `shape`.
Real element_at(const Array& x, std::size_t position, const Shape& shape) {
  std::size_t from = 0, stride = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = shape.size() - 1 - i;
    const std::size_t at = position % shape[axis];
    position /= shape[axis];
    if (i >= x.dimension()) continue;
    const std::size_t extent = x.shape()[x.dimension() - 1 - i];
    from += (extent == 1 ? 0 : at) * stride;
    stride *= extent;
  }
  return x.data()[from];
}

}  // namespace

TEST_CASE("binary ops broadcast, give the plain formula's values, and differentiate twice") {
  Rng rng(1);
  for (const BinaryCase& c : kBinary) {
    for (const auto& [a_shape, b_shape, y_shape] : kShapes) {
      CAPTURE(c.name, to_text(a_shape), to_text(b_shape));
      const Tensor a(rng.uniform(a_shape, c.low, c.low + 2));
      const Tensor b(rng.uniform(b_shape, c.low, c.low + 2));
      Array expected = empty_array(y_shape);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected.data()[i] =
            static_cast<Real>(c.plain(element_at(a.value(), i, y_shape), element_at(b.value(), i, y_shape)));
      }
      check_close(c.op(a, b).value(), expected);
      check_gradients([&](const auto& x) { return c.op(x[0], x[1]); }, {a, b});
      const auto gradients = gradients_of([&](const auto& x) { return c.op(x[0], x[1]); }, {a, b});
      CHECK(gradients[0].shape() == a_shape);
      CHECK(gradients[1].shape() == b_shape);
    }
  }
}

TEST_CASE("an operand that is used twice, and beside itself broadcast, gets the sum of its gradients") {
  check_close(gradient_of([](const Tensor& x) { return x * x + x; }, Tensor{1, 2}), Tensor{3, 5});
  const auto f = [](const Tensor& z) { return sum(exp(z)) + sum(exp(z) - Tensor(Array(Shape{1000}, Real(0)))); };
  check_close(gradient_of(f, Tensor(1)), Tensor(1001 * std::exp(1.0)));
  const Tensor m{{1, 2}, {3, 4}};
  check_close(gradient_of([&](const Tensor& s) { return s * m; }, Tensor(2)), Tensor(10));
}

TEST_CASE("numbers mix with Tensors on either side") {
  const Tensor x{1, 2, 4};
  check_close(2 * x, Tensor{2, 4, 8});
  check_close(x * 0.5, Tensor{0.5, 1, 2});
  check_close(1 - x, Tensor{0, -1, -3});
  check_close(x - 1, Tensor{0, 1, 3});
  check_close(1 + x, Tensor{2, 3, 5});
  check_close(x + 1.5f, Tensor{2.5, 3.5, 5.5});
  check_close(x / 2, Tensor{0.5, 1, 2});
  check_close(2 / x, Tensor{2, 1, 0.5});
  check_close(-x, Tensor{-1, -2, -4});
  check_close(gradient_of([](const Tensor& v) { return 2 * v; }, x), Tensor{2, 2, 2});
  check_close(gradient_of([](const Tensor& v) { return 1 - v; }, x), Tensor{-1, -1, -1});
  check_close(gradient_of([](const Tensor& v) { return v / 2; }, x), Tensor{0.5, 0.5, 0.5});
  check_close(gradient_of([](const Tensor& v) { return 2 / v; }, x), Tensor{-2, -0.5, -0.125});
  check_gradients([](const auto& v) { return 2 * v[0] + (1 - v[0]) * (3 / v[0]) - v[0] / 2 * (v[0] - 1) + -v[0]; },
                  {x});
  Tensor y = x;
  y += 1;
  y *= x;
  y -= x;
  y /= 2;
  check_close(y, Tensor{0.5, 2, 8});
  check_close(x, Tensor{1, 2, 4});  // the other handle keeps its value
}

TEST_CASE("a product differentiates three times") {
  // y = x^2 w, its third derivative by x, x and w is 2: checked as the second order of the first derivative.
  const Function first = [](const auto& x) {
    return Tape::open()->gradient(x[0] * x[0] * x[1], {x[0]}, {Tensor(Array(x[0].shape(), Real(1))), true, true})[0];
  };
  check_gradients(first, {Tensor{1, -2, 3}, Tensor{0.5, 2, -1}});
}

TEST_CASE("powers at 0 are exact, in value, first and second derivative") {
  const Tensor x{0, 1, -3};
  const Real values[3][3] = {{1, 1, 1}, {0, 1, -3}, {0, 1, 9}};
  const Real slopes[3][3] = {{0, 0, 0}, {1, 1, 1}, {0, 2, -6}};
  const Real curvatures[3][3] = {{0, 0, 0}, {0, 0, 0}, {2, 2, 2}};
  for (int b = 0; b <= 2; ++b) {
    CAPTURE(b);
    const auto row = [b](const Real(&numbers)[3][3]) { return Tensor{numbers[b][0], numbers[b][1], numbers[b][2]}; };
    for (bool tensor : {false, true}) {
      const auto f = [=](const Tensor& v) { return tensor ? pow(v, Tensor(b)) : pow(v, Real(b)); };
      check_close(f(x), row(values));
      check_close(gradient_of(f, x), row(slopes));
      Tensor leaf = x.detach();
      leaf.set_requires_grad();
      Tape tape;
      const Tensor seed(Array(Shape{3}, Real(1)));
      const Tensor slope = tape.gradient(f(leaf), {leaf}, {seed, true, true})[0];
      if (slope.requires_grad()) {
        check_close(tape.gradient(slope, {leaf}, {seed})[0], row(curvatures));
      } else {
        check_close(Tensor{0, 0, 0}, row(curvatures));
      }
    }
  }
  check_close(gradient_of([](const Tensor& v) { return pow(v, 0); }, Tensor{0, 1}, Tensor{kInf, 1}), Tensor{0, 0});
}

TEST_CASE("powers by fixed exponents") {
  Rng rng(2);
  const Tensor x(rng.uniform({2, 3}, 0.5, 2.5));
  for (double b : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 2.5, -2.0, 4.0}) {
    CAPTURE(b);
    Array expected = x.value();
    for (Real& v : expected.storage()) v = static_cast<Real>(std::pow(static_cast<double>(v), b));
    check_close(pow(x, static_cast<Real>(b)).value(), expected);
    check_gradients([=](const auto& v) { return pow(v[0], static_cast<Real>(b)); }, {x});
  }
  check_close(pow(Tensor{-2, 0, kInf}, 3), Tensor{-8, 0, kInf});
  check_close(pow(Tensor{-2, 4, 0}, -1), Tensor{-0.5, 0.25, kInf});
}

TEST_CASE("the gradients of a power by its base and its exponent at 0") {
  const auto both = [](double a, double b) {
    return gradients_of([](const auto& x) { return pow(x[0], x[1]); }, {Tensor(a), Tensor(b)});
  };
  const double cases[][4] = {// a, b, d/da, d/db
                             {0, 0, 0, 0},
                             {0, 1, 1, 0},
                             {0, 2, 0, 0},
                             {0, 3, 0, 0},
                             {2, 0, 0, 0.6931471805599453},
                             {1, 5, 5, 0},
                             {4, 0.5, 0.25, 2 * 1.3862943611198906}};
  for (const auto& [a, b, da, db] : cases) {
    CAPTURE(a, b);
    const auto gradients = both(a, b);
    check_close(gradients[0], Tensor(da));
    check_close(gradients[1], Tensor(db));
  }
  CHECK(both(0, 0.5)[0].item() == kInf);
  CHECK(both(0, -1)[0].item() == -kInf);
  // Where the exponent is 0, the mixed second derivative is 1/a.
  check_gradients([](const auto& x) { return pow(x[0], x[1]); }, {Tensor{0.5, 2, 3}, Tensor{0, 0, 1}});
  check_gradients([](const auto& x) { return pow(x[0], Tensor{2, 3, 2}); }, {Tensor{0, -2, -1.5}});
  // Second derivatives at 0 are numbers.
  for (double b : {0.0, 1.0, 2.0, 3.0}) {
    CAPTURE(b);
    std::vector<Tensor> x{Tensor(0), Tensor(b)};
    for (Tensor& t : x) t.set_requires_grad();
    Tape tape;
    const auto first = tape.gradient(pow(x[0], x[1]), x, {{}, true, true});
    CHECK(tape.gradient(first[0], x, {{}, true})[0].item() == (b == 2 ? 2 : 0));
    for (const Tensor& second : tape.gradient(first[0], x, {{}, true})) CHECK(std::isfinite(second.item()));
    for (const Tensor& second : tape.gradient(first[1], x, {{}, true})) CHECK(std::isfinite(second.item()));
  }
}

TEST_CASE("ties share the gradient, and an operand that lost gets exactly 0 of an infinite one") {
  const auto f = [](const auto& x) { return maximum(x[0], x[1]); };
  const auto g = [](const auto& x) { return minimum(x[0], x[1]); };
  const std::vector<Tensor> x{Tensor{1, 2}, Tensor{1, 3}};
  check_close(f(x), Tensor{1, 3});
  check_close(gradients_of(f, x)[0], Tensor{0.5, 0});
  check_close(gradients_of(f, x)[1], Tensor{0.5, 1});
  check_close(gradients_of(g, x)[0], Tensor{0.5, 1});
  check_close(gradients_of(g, x)[1], Tensor{0.5, 0});
  check_close(gradients_of(f, x, Tensor{kInf, kInf})[0], Tensor{kInf, 0});
  check_close(gradients_of(g, x, Tensor{kInf, kInf})[1], Tensor{kInf, 0});
}

TEST_CASE("NaN goes through maximum and minimum, on either side") {
  for (const auto& op : {maximum, minimum}) {
    check_close(op(Tensor{kNaN, 0, kNaN}, Tensor{0, kNaN, kNaN}), Tensor{kNaN, kNaN, kNaN});
    check_close(op(Tensor{kNaN, 0}, Tensor(0)), Tensor{kNaN, 0});
  }
  check_close(maximum(Tensor{kInf, -kInf}, Tensor{0, 0}), Tensor{kInf, 0});
}

TEST_CASE("division by zero: what the chain rule says, and the mask that helps") {
  const Tensor divisor{0, 1};
  const Mask ok = divisor != 0;
  const auto late = [&](const Tensor& x) { return where(ok, x / divisor, Tensor(0)); };
  const auto early = [&](const Tensor& x) { return where(ok, x / where(ok, divisor, Tensor(1)), Tensor(0)); };
  const Tensor x{0, 1};
  check_close(late(x), Tensor{0, 1});
  check_close(early(x), Tensor{0, 1});
  check_close(gradient_of(late, x), Tensor{kNaN, 1});
  check_close(gradient_of(early, x), Tensor{0, 1});
  check_close(Tensor{1, -1, 0} / Tensor{0, 0, 0}, Tensor{kInf, -kInf, kNaN});
}

TEST_CASE("comparisons broadcast, and are false for NaN except !=") {
  const Tensor a{{1}, {2}};
  const Tensor b{1, 2, kNaN};
  const auto bits = [](const Mask& m) {
    std::string text = to_text(m.shape());
    for (auto v : m) text += v ? '1' : '0';
    return text;
  };
  CHECK(bits(a < b) == "(2,3)010000");
  CHECK(bits(a <= b) == "(2,3)110010");
  CHECK(bits(a > b) == "(2,3)000100");
  CHECK(bits(a >= b) == "(2,3)100110");
  CHECK(bits(a == b) == "(2,3)100010");
  CHECK(bits(a != b) == "(2,3)011101");
  CHECK(bits(b > 1) == "(3)010");
}

TEST_CASE("shapes that don't broadcast are refused in the op's name") {
  const Tensor a{{1, 2, 3}, {4, 5, 6}};
  const Tensor b{1, 2};
  check_refused([&] { a + b; }, "[add] ");
  check_refused([&] { a + b; }, "got (2,3) and (2)");
  check_refused([&] { a - b; }, "[sub] ");
  check_refused([&] { a* b; }, "[mul] ");
  check_refused([&] { a / b; }, "[div] ");
  check_refused([&] { pow(a, b); }, "[pow] ");
  check_refused([&] { maximum(a, b); }, "[maximum] ");
  check_refused([&] { minimum(a, b); }, "[m");
  check_refused([&] { (void)(a < b); }, "(2,3) and (2)");
  check_refused([&] { a + Tensor(); }, "undefined Tensor");
}
