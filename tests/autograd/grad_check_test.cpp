#include "autograd/grad_check.hpp"

#include "autograd/random.hpp"
#include "tests/check.hpp"

using namespace tapegrad;
using Catch::Matchers::ContainsSubstring;

#ifndef TAPEGRAD_DOUBLE

TEST_CASE("gradients are not checked in single precision") {
  const Function f = [](const std::vector<Tensor>& x) { return exp(x[0]); };
  const std::string line = "gradients are checked in double: link tapegrad::double";
  check_refused([&] { grad_check(f, {Tensor{1, 2}}); }, "[grad_check] " + line);
  check_refused([&] { grad_grad_check(f, {Tensor{1, 2}}); }, "[grad_grad_check] " + line);
}

#else

namespace {

/// x^3, its gradient multiplied by `factor` at one element, or at all with `element` -1.
Tensor wrong_cube(const Tensor& x, Real factor, std::ptrdiff_t element) {
  return record(
      "wrong_cube", Tensor(x.value() * x.value() * x.value()),
      [factor, element]<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
        Array factors(dx.shape(), element < 0 ? factor : Real(1));
        if (element >= 0) factors.data()[element] = factor;
        dx += dy * x * x * Real(3) * T(factors);
      },
      x);
}

/// x^3 with a right gradient, whose own gradient is multiplied by `factor`.
Tensor wrong_second_cube(const Tensor& x, Real factor) {
  return record(
      "wrong_second_cube", Tensor(x.value() * x.value() * x.value()),
      [factor]<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
        if constexpr (std::is_same_v<T, Array>) {
          dx += dy * x * x * Real(3);
        } else {
          // 3 f x^2 + 3 (1 - f) x0^2 with x0 a constant: the same value, f times the slope
          const Tensor constant = x.detach();
          dx += dy * (x * x * (3 * factor) + constant * constant * (3 * (1 - factor)));
        }
      },
      x);
}

}  // namespace

TEST_CASE("right rules pass the gradient check") {
  Rng rng(1);
  const Tensor a = rng.normal({2, 3});
  const Tensor b = rng.normal({3});
  check_gradients([](const auto& x) { return x[0] * sin(x[1]); }, {a, b});
  check_gradients([](const auto& x) { return x[0]; }, {a});
  check_gradients([](const auto& x) { return 3 * x[0] + 1; }, {a});
  check_gradients([](const auto& x) { return x[0] * x[0]; }, {Tensor(2.5)});
  check_gradients([](const auto& x) { return exp(x[0]) + x[1] * 0; }, {a, b});
  check_gradients([](const auto& x) { return exp(x[0]); }, {Tensor(Array(Shape{0, 3}))});
}

TEST_CASE("a small linear layer passes with tolerances of 1e-6 in double") {
  const Function layer = [](const auto& x) { return matmul(x[0], x[1], Transpose::no, Transpose::yes) + x[2]; };
  Rng rng(9);
  const std::vector<Tensor> inputs{rng.normal({3, 2}), rng.normal({1, 2}), rng.normal({1})};
  check_gradients(layer, inputs, {.step = 1e-6});
}

TEST_CASE("steep functions and inputs near a kink or a border raise no false alarm") {
  check_gradients([](const auto& x) { return exp(x[0] * 60); }, {Tensor{-1, -0.5, 0, 0.5, 1}});
  check_gradients([](const auto& x) { return sin(x[0] * 300); }, {Tensor{-1, -0.5, 0.1, 0.5, 1}});
  check_gradients([](const auto& x) { return tanh(x[0] * 1000); }, {Tensor{-1e-3, 1e-4, 2e-3}});
  check_gradients([](const auto& x) { return log(x[0]); }, {Tensor{1e-4, 1e-2, 1, 1e6}});
  check_gradients([](const auto& x) { return 1 / x[0]; }, {Tensor{1e-3, -1e-2, 1e3}});
  check_gradients([](const auto& x) { return abs(x[0]) + relu(x[0]); }, {Tensor{1e-4, -1e-4, 5e-4}});
  Rng rng(2);
  check_gradients([](const auto& x) { return relu(x[0]) * x[0]; }, {Tensor(rng.normal({20000}))});
  check_gradients([](const auto& x) { return tanh(x[0]); }, {Tensor(rng.normal({5000}, 0, 3))});
}

TEST_CASE("rounding where all derivatives are 0 raises no false alarm") {
  Rng rng(3);
  const Function f = [](const auto& xs) { return sum(softmax(xs[0], 1), 1); };
  for (int i = 0; i < 20; ++i) {
    const Tensor x = rng.normal({4, 5});
    CHECK(grad_check(f, {x}).passed);
    CHECK(grad_grad_check(f, {x}).passed);
  }
}

TEST_CASE("a gradient wrong by 0.1 % in one of 1000 elements is found") {
  Rng rng(3);
  const Tensor x = rng.uniform({10, 100}, 0.1, 3);
  for (int element : {0, 517, 999}) {
    const Function f = [=](const auto& xs) { return wrong_cube(xs[0], Real(1.001), element); };
    const GradCheckReport report = grad_check(f, {x});
    CHECK_FALSE(report);
    CHECK_THAT(report.message, ContainsSubstring("element (" + std::to_string(element / 100) + "," +
                                                 std::to_string(element % 100) + ")"));
    CHECK_FALSE(grad_check([&](const auto& xs) { return sum(f(xs)); }, {x}));
  }
  CHECK(grad_check([](const auto& xs) { return wrong_cube(xs[0], 1, 3); }, {x}).message ==
        "first order: all gradients agree");
}

TEST_CASE("a gradient wrong by 0.1 % in all of 100,000 elements is found") {
  Rng rng(4);
  const Tensor x = rng.normal({100000});
  const GradCheckReport report = grad_check([](const auto& xs) { return wrong_cube(xs[0], Real(0.999), -1); }, {x});
  CHECK_FALSE(report);
  CHECK_THAT(report.message, ContainsSubstring("input 0 of shape (100000), random direction 0: analytic "));
  CHECK_FALSE(grad_check([](const auto& xs) { return sum(wrong_cube(xs[0], Real(1.001), -1)); }, {x}));
  CHECK(grad_check([](const auto& xs) { return wrong_cube(xs[0], 1, -1); }, {x}).message ==
        "first order: all gradients agree");
}

TEST_CASE("a second order that is wrong by 0.1 %, or wrongly constant, is found") {
  Rng rng(5);
  for (std::size_t n : {5, 100000}) {
    const Tensor x = rng.normal({n});
    for (Real factor : {Real(0.999), Real(1.001), Real(0), Real(1)}) {
      const Function f = [=](const auto& xs) { return wrong_second_cube(xs[0], factor); };
      CHECK(grad_check(f, {x}).message == "first order: all gradients agree");
      const GradCheckReport report = grad_grad_check(f, {x});
      CHECK(report.passed == (factor == 1));
      if (factor != 1) CHECK_THAT(report.message, ContainsSubstring("[grad_grad_check] second order, input 0"));
    }
  }
  // The recorded gradient may not even require grad.
  const Function constant = [](const auto& xs) {
    return record(
        "detached", Tensor(xs[0].value() * xs[0].value()),
        []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
          if constexpr (std::is_same_v<T, Array>) {
            dx += dy * x * Real(2);
          } else {
            dx += dy.detach() * x.detach() * Real(2);
          }
        },
        xs[0]);
  };
  CHECK(grad_check(constant, {Tensor{1, 2}}));
  CHECK_THAT(grad_grad_check(constant, {Tensor{1, 2}}).message, ContainsSubstring("element (0): analytic 0, numeric "));
}

TEST_CASE("a recorded gradient of another value than the plain one is found") {
  const Function f = [](const auto& xs) {
    return record(
        "two_faced", Tensor(xs[0].value() * Real(2)),
        []<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += dy * Real(std::is_same_v<T, Array> ? 2 : 3); },
        xs[0]);
  };
  CHECK(grad_check(f, {Tensor{1, 2}}));
  CHECK_THAT(grad_grad_check(f, {Tensor{1, 2}}).message, ContainsSubstring("must be the same whether or not"));
}

TEST_CASE("a failed gradient check says input, element and both numbers") {
  const Function f = [](const auto& xs) { return wrong_cube(xs[1], 2, 5) + sum(xs[0]); };
  const Tensor x{{1, 1, 1}, {1, 1, 2}};
  const GradCheckReport report = grad_check(f, {Tensor{1, 2}, x});
  CHECK_FALSE(report.passed);
  const std::string start = "[grad_check] first order, input 1, element (1,2): analytic ";
  CHECK_THAT(report.message, ContainsSubstring(start));
  double analytic = 0, numeric = 0;
  std::sscanf(report.message.c_str() + start.size(), "%lf, numeric %lf", &analytic, &numeric);
  CHECK(analytic == Approx(2 * numeric).epsilon(1e-6));
  CHECK(std::abs(numeric) >= 6);
}

TEST_CASE("what can't be checked is said, not guessed") {
  const Tensor x{1, 2};
  CHECK_THAT(grad_check([](const auto& xs) { return log(xs[0]); }, {Tensor{1, -1}}).message,
             ContainsSubstring("f's output must be finite; got "));
  CHECK_THAT(grad_check([](const auto& xs) { return exp(xs[0]); }, {Tensor{1, 1000}}).message,
             ContainsSubstring("got inf at element (1)"));
  CHECK_THAT(grad_grad_check([](const auto& xs) { return sqrt(xs[0]); }, {Tensor{0, 1}}).message,
             ContainsSubstring("the gradient of input 0 must be finite; got "));
  CHECK_THAT(grad_check([](const auto& xs) { return sqrt(xs[0]); }, {Tensor{0}}).message,
             ContainsSubstring("element (0): f is finite there, but not beside it"));
  const Parameter w(Tensor{1, 2});
  for (const Function& f : {Function([](const auto&) {
                              return Tensor{1, 2};
                            }),
                            Function([&](const auto&) { return w; }), Function([&](const auto&) { return exp(w); }),
                            Function([](const auto& xs) { return xs[0].detach() * 2; })}) {
    CHECK_THAT(grad_check(f, {x}).message, ContainsSubstring("depends on no input"));
    CHECK_THAT(grad_grad_check(f, {x}).message, ContainsSubstring("depends on no input"));
  }
  Rng rng(6);
  CHECK_THAT(grad_check([&](const auto& xs) { return xs[0] * Tensor(rng.normal({2})); }, {x}).message,
             ContainsSubstring("f's output must be the same"));
  check_refused([&] { grad_check([](const auto& xs) { return xs[0]; }, {}); }, "[grad_check] there must be an input");
  check_refused([&] { grad_check([](const auto& xs) { return xs[0]; }, {x, Tensor()}); }, "undefined is input; got 1");
  check_refused([&] { grad_grad_check([](const auto&) { return Tensor(); }, {x}); }, "f must return a Tensor");
  check_refused([&] { grad_check([](const auto& xs) { return xs[0]; }, {x}, {.step = 0}); }, "the step must be");
  check_refused([&] { grad_check([](const auto& xs) { return xs[0]; }, {x}, {.directions = 0}); }, "random direction");
  const NoTape pause;
  CHECK(grad_check([](const auto& xs) { return exp(xs[0]); }, {x}).passed);
}

TEST_CASE("a gradient check leaves inputs, gradients and the open tape alone") {
  Tensor x{1, 2};
  x.set_requires_grad();
  const Parameter w(Tensor{3, 4});
  Tape tape;
  const Tensor y = sum(x * w);
  const std::size_t steps = tape.size();
  const Function f = [&](const auto& xs) { return exp(xs[0]) * w; };
  check_gradients(f, {x});
  check_gradients(f, {y});  // an input may be on a tape
  CHECK_THROWS_AS(grad_check([](const auto&) -> Tensor { throw std::runtime_error("no"); }, {x}), std::runtime_error);
  int calls = 0;
  const Function fails_later = [&](const auto& xs) {
    if (++calls > 5) throw std::runtime_error("later");
    return exp(xs[0]);
  };
  CHECK_THROWS_AS(grad_grad_check(fails_later, {x}), std::runtime_error);
  CHECK(Tape::open() == &tape);
  CHECK(tape.size() == steps);
  CHECK_FALSE(x.has_grad());
  CHECK_FALSE(w.has_grad());
  check_close(x, Tensor{1, 2});
  CHECK(x.version() == 0);
  tape.backward(y);
  check_close(x.grad(), Tensor{3, 4});
}

#endif
