#include "autograd/random.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

/// What a reduction makes of the numbers that fall together.
using Numbers = std::vector<double>;
struct Case {
  const char* name;
  Tensor (*op)(const Tensor&, Axes, bool);
  double (*plain)(const Numbers&);
};

double sum_of(const Numbers& x) {
  double total = 0;
  for (double v : x) total += v;
  return total;
}
double var_of(const Numbers& x) {
  double total = 0;
  for (double v : x) total += std::pow(v - sum_of(x) / double(x.size()), 2);
  return total / double(x.size() - 1);
}
double log_sum_exp_of(const Numbers& x) {
  double total = 0;
  for (double v : x) total += std::exp(v);
  return std::log(total);
}
double norm_of(const Numbers& x) {
  double total = 0;
  for (double v : x) total += v * v;
  return std::sqrt(total);
}

const Case kCases[] = {
    {"sum", sum, sum_of},
    {"mean", mean, [](const Numbers& x) { return sum_of(x) / double(x.size()); }},
    {"var", [](const Tensor& x, Axes axes, bool keepdim) { return var(x, axes, 1, keepdim); }, var_of},
    {"amax", amax, [](const Numbers& x) { return *std::max_element(x.begin(), x.end()); }},
    {"amin", amin, [](const Numbers& x) { return *std::min_element(x.begin(), x.end()); }},
    {"logsumexp", logsumexp, log_sum_exp_of},
    {"norm", norm, norm_of},
};

/// The reduction by one pass over all elements, axes kept with extent 1.
Array plain_reduction(const Array& x, std::vector<int> axes, double (*f)(const Numbers&)) {
  const std::size_t rank = x.dimension();
  std::vector<bool> reduced(rank, axes.empty());
  for (int axis : axes) reduced[static_cast<std::size_t>(axis < 0 ? axis + int(rank) : axis)] = true;
  Shape shape = x.shape();
  for (std::size_t i = 0; i < rank; ++i) shape[i] = reduced[i] ? 1 : shape[i];
  std::vector<Numbers> groups(element_count(shape));
  for (std::size_t element = 0; element < x.size(); ++element) {
    std::size_t rest = element, group = 0, stride = 1;
    for (std::size_t i = rank; i-- > 0;) {
      const std::size_t at = rest % x.shape()[i];
      rest /= x.shape()[i];
      group += (reduced[i] ? 0 : at) * stride;
      stride *= shape[i];
    }
    groups[group].push_back(x.data()[element]);
  }
  Array result = empty_array(shape);
  for (std::size_t i = 0; i < groups.size(); ++i) result.data()[i] = static_cast<Real>(f(groups[i]));
  return result;
}

}  // namespace

TEST_CASE("reductions over any axes give the plain values, and differentiate twice") {
  Rng rng(1);
  struct Row {
    Shape shape;
    std::vector<int> axes;
    const char* reduced;
  };
  const Row rows[] = {
      {{4}, {}, "()"},
      {{4}, {0}, "()"},
      {{3, 4}, {}, "()"},
      {{3, 4}, {0}, "(4)"},
      {{3, 4}, {1}, "(3)"},
      {{3, 4}, {-1, 0}, "()"},
      {{2, 3, 4}, {1}, "(2,4)"},
      {{2, 3, 4}, {0, 2}, "(3)"},
      {{2, 3, 4}, {-1}, "(2,3)"},
      {{2, 3, 4}, {2, 1}, "(2)"},
      {{3, 1, 2}, {0}, "(1,2)"},
      {{2, 3, 1, 2}, {1, 3}, "(2,1)"},
      {{0, 3}, {1}, "(0)"},
  };
  for (const Case& c : kCases) {
    for (const Row& row : rows) {
      CAPTURE(c.name, to_text(row.shape), row.axes);
      const Tensor x(rng.normal(row.shape));
      Array expected = plain_reduction(x.value(), row.axes, c.plain);
      const Tensor kept = c.op(x, row.axes, true);
      check_close(kept.value(), expected, 4 * kTight);
      const Tensor dropped = c.op(x, row.axes, false);
      CHECK(to_text(dropped.shape()) == row.reduced);
      expected.reshape(dropped.shape());
      check_close(dropped.value(), expected, 4 * kTight);
      for (bool keepdim : {false, true}) {
        check_gradients([&](const auto& xs) { return c.op(xs[0], row.axes, keepdim); }, {x});
      }
    }
  }
}

TEST_CASE("a scalar is reduced to itself") {
  const Tensor x(3);
  for (const Tensor& y : {sum(x), mean(x), amax(x), amin(x), logsumexp(x), norm(x)}) check_close(y, x);
  check_close(gradient_of([](const Tensor& v) { return sum(v) + mean(v) + amax(v) + logsumexp(v); }, x), Tensor(4));
}

TEST_CASE("nothing reduces to what the formula gives, or is refused") {
  const Tensor nothing(Array(Shape{0}));
  const Tensor rows(Array(Shape{2, 0}));
  check_close(sum(nothing), Tensor(0));
  check_close(sum(rows, 1), Tensor{0, 0});
  check_close(mean(nothing), Tensor(kNaN));
  check_close(mean(rows, 1), Tensor{kNaN, kNaN});
  check_close(var(nothing), Tensor(kNaN));
  check_close(logsumexp(rows, 1), Tensor{-kInf, -kInf});
  check_close(norm(rows, 1), Tensor{0, 0});
  check_close(gradient_of([](const Tensor& x) { return logsumexp(x); }, nothing), nothing);
  check_close(gradient_of([](const Tensor& x) { return sum(x, 0); }, rows), rows);
  check_refused([&] { amax(nothing); }, "[amax] there must be an element to take; got (0)");
  check_refused([&] { amin(rows, 1); }, "[amin] there must be an element to take; got (2,0)");
  check_refused([&] { argmax(rows, 1); }, "[argmax] the axis must not be empty; got (2,0)");
}

TEST_CASE("variance with a correction") {
  const Tensor x{{1, 2, 4}, {0, 0, 3}};
  check_close(var(x, 1, 0), Tensor{14 / 9.0, 2});
  check_close(var(x, 1), Tensor{7 / 3.0, 3});
  check_close(var(x, 1, 1, true), Tensor{{7 / 3.0}, {3}});
  check_gradients([](const auto& xs) { return var(xs[0], 1, 0); }, {x});
  check_close(var(Tensor{1, 2}, {}, 2), Tensor(kInf));  // as many degrees of freedom as elements
  check_close(var(Tensor{1, 2}, {}, 3), Tensor(kInf));
  check_close(var(Tensor{5}), Tensor(kNaN));
  check_close(var(Tensor{5}, {}, 0), Tensor(0));
  check_close(var(Tensor{1e6 + 1, 1e6 + 2, 1e6 + 3}), Tensor(1));  // a large mean costs nothing
}

TEST_CASE("ties of amax share the gradient, also an infinite one") {
  const auto over_all = [](const Tensor& x) { return amax(x); };
  check_close(gradient_of(over_all, Tensor{1, 3, 3}), Tensor{0, 0.5, 0.5});
  check_close(gradient_of([](const Tensor& x) { return amin(x); }, Tensor{2, 1, 1, 1}),
              Tensor{0, 1 / 3.0, 1 / 3.0, 1 / 3.0});
  check_close(gradient_of([](const Tensor& x) { return amax(x, 1); }, Tensor{{1, 1}, {2, 3}}),
              Tensor{{0.5, 0.5}, {0, 1}});
  check_close(gradient_of(over_all, Tensor{1, 3}, Tensor(kInf)), Tensor{0, kInf});
  check_close(gradient_of(over_all, Tensor{-kInf, -kInf}), Tensor{0.5, 0.5});
}

TEST_CASE("NaN is the largest, the smallest and the first") {
  for (std::size_t n : {1, 2, 3, 8, 9, 16, 17, 33, 100}) {
    for (std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      CAPTURE(n, at);
      Array x(Shape{n, 2}, Real(1));
      x(at, 0) = kNaN;
      check_close(amax(Tensor(x), 0), Tensor{kNaN, 1});
      check_close(amin(Tensor(x), 0), Tensor{kNaN, 1});
      Array row(Shape{n}, Real(-kInf));
      CHECK(amax(Tensor(row)).item() == -kInf);
      row(at) = kNaN;
      CHECK(std::isnan(amax(Tensor(row)).item()));
      CHECK(std::isnan(amin(Tensor(row)).item()));
      CHECK(std::isnan(sum(Tensor(row)).item()));
      CHECK(argmax(Tensor(row), 0).data()[0] == static_cast<std::int64_t>(at));
    }
  }
  check_close(gradient_of([](const Tensor& x) { return amax(x); }, Tensor{1, kNaN, 2}), Tensor{0, 1, 0});
}

TEST_CASE("argmax takes the first of equals, along any axis") {
  const Tensor x{{1, 3, 3}, {5, 4, 5}};
  const auto check = [](const Index& got, const Shape& shape, std::vector<std::int64_t> expected) {
    CHECK(to_text(got.shape()) == to_text(shape));
    CHECK(std::vector<std::int64_t>(got.begin(), got.end()) == expected);
  };
  check(argmax(x, 1), {2}, {1, 0});
  check(argmax(x, -1, true), {2, 1}, {1, 0});
  check(argmax(x, 0), {3}, {1, 1, 1});
  check(argmax(Tensor{1, kNaN, 9, kNaN}, 0), {}, {1});
  check(argmax(Tensor{-kInf, -kInf}, 0), {}, {0});
}

TEST_CASE("logsumexp neither overflows nor meets NaN that is not there") {
  check_close(logsumexp(Tensor{1e4, 1e4}), Tensor(1e4 + std::log(2.0)));
  check_close(logsumexp(Tensor{-1e4, -1e4}), Tensor(-1e4 + std::log(2.0)));
  check_close(logsumexp(Tensor{{-kInf, -kInf}, {-kInf, 1}, {kInf, 1}, {kNaN, 1}}, 1), Tensor{-kInf, 1, kInf, kNaN});
  const auto f = [](const Tensor& x) { return logsumexp(x, 1); };
  check_close(gradient_of(f, Tensor{{-kInf, -kInf}, {-kInf, 1}, {100, 100}}), Tensor{{0, 0}, {0, 1}, {0.5, 0.5}},
              10 * kTight);
  // Beside +inf and NaN nothing of the other elements' own e^x is left.
  check_close(gradient_of(f, Tensor{{kInf, 1}, {kNaN, 1}}), Tensor{{kNaN, 0}, {kNaN, kNaN}});
}

TEST_CASE("the norm of zeros has the gradient 0") {
  const auto f = [](const Tensor& x) { return norm(x, 1); };
  const Tensor x{{0, 0}, {3, 4}};
  check_close(f(x), Tensor{0, 5});
  check_close(gradient_of(f, x), Tensor{{0, 0}, {0.6, 0.8}});
}

TEST_CASE("norms and their gradients are right where squares leave Real's range") {
  const auto f = [](const Tensor& x) { return norm(x, 1); };
  for (double size : {kDouble ? 1e200 : 1e25, kDouble ? 1e-200 : 1e-25}) {
    const Tensor x = Tensor{{3, 4}, {0, -2}} * static_cast<Real>(size);
    check_close(f(x) / static_cast<Real>(size), Tensor{5, 2});
    check_close(gradient_of(f, x), Tensor{{0.6, 0.8}, {0, -1}});
  }
  check_close(f(Tensor{{-kInf, 1}, {kNaN, 1}}), Tensor{kInf, kNaN});
  CHECK(norm(zeros({2, 0}), 1).shape() == Shape{2});
}

TEST_CASE("long sums stay right in single precision") {
  {
    const std::size_t n = std::size_t{1} << (kDouble ? 20 : 25);  // twice what float can count one by one
    const Tensor all(Array(Shape{n}, Real(1)));
    CHECK(sum(all).item() == static_cast<Real>(n));
    CHECK(mean(all).item() == 1);
  }
  const Tensor tenths(Array(Shape{10000, 1000}, Real(0.1)));
  const double tenth = static_cast<double>(Real(0.1));
  CHECK(sum(tenths).item() == Approx(1e7 * tenth).epsilon(1e-6));
  CHECK(sum(tenths, 0).value()(7) == Approx(1e4 * tenth).epsilon(1e-6));
  CHECK(sum(tenths, 1).value()(7) == Approx(1e3 * tenth).epsilon(1e-6));
  Rng rng(3);
  const Tensor x(rng.uniform({1000003}));
  double expected = 0;
  for (Real v : x.value().storage()) expected += v;
  CHECK(sum(x).item() == Approx(expected).epsilon(kDouble ? 1e-13 : 1e-6));
  // What sum repeats, its gradient's sum adds up again: the same care on the way back.
  CHECK(gradient_of([&](const Tensor& b) { return sum(b + tenths); }, Tensor(0)).item() == 1e7);
  release_pooled_memory();
}

TEST_CASE("row maxima subtract from their own rows") {
  const Tensor x{{1, 2}, {3, 7}, {5, 6}};
  check_close(x - amax(x, 1, true), Tensor{{-1, 0}, {-4, 0}, {-1, 0}});
}

TEST_CASE("sum_to undoes broadcasting") {
  const Tensor x{{1, 2, 3}, {4, 5, 6}};
  check_close(sum_to(x, Shape{3}), Tensor{5, 7, 9});
  check_close(sum_to(x, Shape{2, 1}), Tensor{{6}, {15}});
  check_close(sum_to(x, Shape{}), Tensor(21));
  check_close(sum_to(x, Shape{2, 3}), x);
  for (const Shape& shape : {Shape{3}, Shape{1, 3}, Shape{2, 1}, Shape{}}) {
    check_gradients([=](const auto& xs) { return square(sum_to(xs[0], shape)); }, {x});
    check_gradients([=](const auto& xs) { return square(broadcast_to(sum_to(xs[0], shape), Shape{4, 2, 3})); }, {x});
  }
  check_refused([&] { sum_to(x, Shape{2}); }, "[sum_to] ");
}

TEST_CASE("products, with zeros, one element and none") {
  check_close(prod(Tensor{2, 3, 4, 5, 6}, 0), Tensor(720));
  check_close(prod(Tensor{{2, 3, 4}, {1, 0, 5}}, 1), Tensor{24, 0});
  check_close(prod(Tensor{{2, 3, 4}, {1, 0, 5}}, 0, true), Tensor{{2, 0, 20}});
  check_close(prod(Tensor(Array(Shape{2, 0})), 1), Tensor{1, 1});
  const auto f = [](const Tensor& x) { return prod(x, 1); };
  check_close(gradient_of(f, Tensor{{2, 3, 4}, {0, 3, 4}, {0, 0, 4}, {0, 0, 0}}),
              Tensor{{12, 8, 6}, {12, 0, 0}, {0, 0, 0}, {0, 0, 0}});
  check_close(gradient_of(f, Tensor(Array(Shape{2, 0}))), Tensor(Array(Shape{2, 0})));
  Rng rng(2);
  for (std::size_t n : {1, 2, 3, 5, 8}) {
    Array x = rng.normal({2, n, 2});
    x(0, n / 2, 1) = 0;
    for (bool keepdim : {false, true}) {
      check_gradients([=](const auto& xs) { return prod(xs[0], 1, keepdim); }, {Tensor(x)});
    }
  }
  check_refused([] { prod(Tensor{1}, 1); }, "[prod] ");
}

TEST_CASE("axes that are not there, or twice, are refused in the op's name") {
  const Tensor x{{1, 2}};
  check_refused([&] { sum(x, 2); }, "[sum] ");
  check_refused([&] { mean(x, {0, -2}); }, "[mean] ");
  check_refused([&] { var(x, -3); }, "[var] ");
  check_refused([&] { amax(x, {1, 1}); }, "[amax] ");
  check_refused([&] { logsumexp(x, 7); }, "[logsumexp] ");
  check_refused([&] { norm(x, {0, 0}); }, "[norm] ");
  check_refused([&] { argmax(x, 2); }, "[argmax] ");
}
