#include <numeric>

#include "autograd/random.hpp"
#include "autograd/threads.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

/// Rows of weight.size() normalised by the plain formula, in long double; a centred row's first element is taken off
/// first, or a large mean would make this less exact than what it is to judge.
Array plain_norm(const Array& x, const Array& weight, const Array& bias, bool centred, long double eps) {
  Array y = x;
  const std::size_t n = weight.size();
  for (std::size_t row = 0; row < x.size(); row += n) {
    std::vector<long double> z(x.data() + row, x.data() + row + n);
    const auto take_off = [&](long double shift) {
      for (long double& v : z) v -= shift;
    };
    if (centred) {
      take_off(z[0]);
      take_off(std::accumulate(z.begin(), z.end(), 0.0L) / n);
    }
    const long double square = std::inner_product(z.begin(), z.end(), z.begin(), 0.0L) / n;
    for (std::size_t i = 0; i < n; ++i) {
      y.data()[row + i] = static_cast<Real>(z[i] / std::sqrt(square + eps) * weight.data()[i] + bias.data()[i]);
    }
  }
  return y;
}

constexpr Real kEps = Real(1e-5);

Tensor norm_of(const std::vector<Tensor>& xs) { return layer_norm(xs[0], xs[1].shape(), xs[1], xs[2], Real(1e-3)); }
Tensor rms_of(const std::vector<Tensor>& xs) { return rms_norm(xs[0], xs[1], Real(1e-3)); }

}  // namespace

TEST_CASE("layer_norm and rms_norm are the plain formula for every row length, aligned or not") {
  Rng rng(1);
  for (std::size_t n = 1; n <= 70; ++n) {
    CAPTURE(n);
    const Tensor x(rng.normal({3, n}, 1, 4));
    const Tensor weight(rng.normal({n}));
    const Tensor bias(rng.normal({n}));
    check_close(layer_norm(x, {n}, weight, bias),
                Tensor(plain_norm(x.value(), weight.value(), bias.value(), true, kEps)));
    check_close(rms_norm(x, weight, kEps),
                Tensor(plain_norm(x.value(), weight.value(), Array(Shape{n}, Real(0)), false, kEps)));
  }
}

TEST_CASE("several trailing axes are normalised as one") {
  Rng rng(2);
  const Tensor x(rng.normal({2, 3, 4}));
  const Tensor weight(rng.normal({3, 4}));
  const Tensor bias(rng.normal({3, 4}));
  const Tensor flat = layer_norm(reshape(x, {2, 12}), {12}, reshape(weight, {12}), reshape(bias, {12}));
  check_close(layer_norm(x, {3, 4}, weight, bias), reshape(flat, {2, 3, 4}));
  check_close(rms_norm(x, weight), reshape(rms_norm(reshape(x, {2, 12}), reshape(weight, {12})), {2, 3, 4}));
  const Tensor all = layer_norm(x, {2, 3, 4});
  check_close(mean(all), Tensor(0));
  check_close(mean(square(all)), Tensor(1), 1e-4);
}

TEST_CASE("without weight or bias they count as 1 and 0") {
  Rng rng(3);
  const Tensor x(rng.normal({5, 6}));
  const Tensor weight(rng.normal({6}));
  const Tensor bias(rng.normal({6}));
  const Tensor plain = layer_norm(x, {6});
  check_close(layer_norm(x, {6}, weight), plain * weight);
  check_close(layer_norm(x, {6}, {}, bias), plain + bias);
}

// A large mean must not drown the deviations (PyTorch issue 51102).
TEST_CASE("layer_norm is right to the last bits however large the mean") {
  check_close(layer_norm(Tensor{2000.1, 2000.9, 1999.2, 2001.3}, {4}), Tensor{-0.34193, 0.65275, -1.46090, 1.15009},
              1e-3);
  Rng rng(4);
  const double largest = kDouble ? 1e12 : 1e6;
  for (double mean = 1; mean <= largest; mean *= 10) {
    for (std::size_t n : {4, 19, 512}) {
      CAPTURE(mean, n);
      const Array x = rng.normal({2, n}, mean, 3);
      const Array unit(Shape{n}, Real(1));
      check_close(layer_norm(Tensor(x), {n}).value(), plain_norm(x, unit, Array(Shape{n}, Real(0)), true, kEps));
      // The gradient of row 0 under dy = e_0 is (e_0 - 1/n - z z_0 / n) / deviation.
      Array dy(Shape{2, n}, Real(0));
      dy(0, 0) = 1;
      const Array dx = gradient_of([&](const Tensor& v) { return layer_norm(v, {n}); }, Tensor(x), Tensor(dy)).value();
      const Array z = plain_norm(x, unit, Array(Shape{n}, Real(0)), true, 0);
      const double deviation = std::sqrt(var(Tensor(x) - Tensor(x(0, 0)), 1, 0).value()(0));
      Array expected(Shape{2, n}, Real(0));
      for (std::size_t i = 0; i < n; ++i) {
        const double one = i == 0 ? 1 : 0;
        expected(0, i) = static_cast<Real>((one - (1 + z(0, i) * z(0, 0)) / n) / deviation);
      }
      check_close(dx, expected, 1e-5);
    }
  }
}

TEST_CASE("rows of equal numbers give the bias, and a row of one number has no gradient") {
  const Tensor bias{1, 2, 3};
  const Tensor equal = full({2, 3}, Real(1e8 + 7));
  check_close(layer_norm(equal, {3}, {}, bias), Tensor{{1, 2, 3}, {1, 2, 3}});
  check_close(layer_norm(Tensor{{5}, {-7}}, {1}, {}, Tensor{3}), Tensor{{3}, {3}});
  check_close(gradient_of([](const Tensor& x) { return layer_norm(x, {1}); }, Tensor{{5}, {-7}}), Tensor{{0}, {0}});
  check_close(rms_norm(Tensor{{0, 0}, {0, 0}}, ones({2})), zeros({2, 2}));
}

TEST_CASE("huge and tiny numbers keep their proportions; NaN and infinities stay in their row") {
  const Real huge = kDouble ? Real(1e150) : Real(1e30);  // whose square is no float
  check_close(layer_norm(Tensor{-huge, huge, 0, 0}, {4}), std::sqrt(Real(2)) * Tensor{-1, 1, 0, 0});
  check_close(rms_norm(Tensor{3 * huge, -4 * huge}, ones({2})), Tensor{3, -4} / Real(std::sqrt(12.5)));
  check_close(rms_norm(Tensor{3e-10, -4e-10}, ones({2}), 0), Tensor{3, -4} / Real(std::sqrt(12.5)));
  for (Real special : {kNaN, kInf, -kInf}) {
    Array x(Shape{3, 9}, Real(2));
    x(1, 8) = special;
    x(0, 0) = x(2, 0) = 4;
    const Array y = layer_norm(Tensor(x), {9}).value();
    const Array r = rms_norm(Tensor(x), ones({9})).value();
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(std::isfinite(y(0, i)));
      CHECK(std::isnan(y(1, i)));
      CHECK(std::isfinite(y(2, i)));
      CHECK(std::isfinite(r(0, i)));
    }
    CHECK(std::isnan(r(1, 8)));
  }
}

TEST_CASE("gradients of normalisation, first and second order") {
  Rng rng(5);
  const std::vector<std::pair<Shape, Shape>> shapes = {{{4}, {4}},         {{3, 5}, {5}},       {{2, 3, 4}, {3, 4}},
                                                       {{2, 1, 19}, {19}}, {{2, 2, 3, 2}, {2}}, {{2, 3, 2}, {2, 3, 2}}};
  for (const auto& [shape, normalized] : shapes) {
    CAPTURE(to_text(shape));
    const std::vector<Tensor> inputs{Tensor(rng.normal(shape)), Tensor(rng.normal(normalized)),
                                     Tensor(rng.normal(normalized))};
    check_gradients(norm_of, inputs);
    check_gradients(rms_of, {inputs[0], inputs[1]});
    const Shape axes = normalized;
    check_gradients([axes](const auto& xs) { return layer_norm(xs[0], axes, {}, {}, Real(1e-3)); }, {inputs[0]});
    check_gradients([axes](const auto& xs) { return layer_norm(xs[0], axes, xs[1], {}, Real(1e-3)); },
                    {inputs[0], inputs[1]});
    check_gradients([axes](const auto& xs) { return layer_norm(xs[0], axes, {}, xs[1], Real(1e-3)); },
                    {inputs[0], inputs[2]});
  }
}

TEST_CASE("no rows, and rows of nothing") {
  check_close(layer_norm(zeros({0, 3}), {3}, ones({3}), zeros({3})), zeros({0, 3}));
  check_close(layer_norm(zeros({2, 0}), {0}), zeros({2, 0}));
  check_close(rms_norm(zeros({0, 3}), ones({3})), zeros({0, 3}));
  const auto gradients = gradients_of(norm_of, {zeros({0, 3}), ones({3}), zeros({3})});
  check_close(gradients[0], zeros({0, 3}));
  check_close(gradients[1], zeros({3}));
  check_close(gradients[2], zeros({3}));
}

TEST_CASE("gradients of weight and bias stay right over many rows") {
  const std::size_t rows = 100000;
  Array x(Shape{rows, 2});
  for (std::size_t row = 0; row < rows; ++row) x(row, 0) = Real(row % 2), x(row, 1) = 1 - x(row, 0);
  const Array dy(Shape{rows, 2}, Real(0.1));
  const auto f = [](const std::vector<Tensor>& xs) { return layer_norm(xs[0], {2}, xs[1], xs[2], 0); };
  const auto gradients = gradients_of(f, {Tensor(x), ones({2}), zeros({2})}, Tensor(dy));
  check_close(gradients[1], Tensor{0, 0}, kDouble ? 1e-9 : 1e-3);
  check_close(gradients[2], Tensor(Array(Shape{2}, Real(rows) * Real(0.1))));
}

TEST_CASE("a gradient is added to, not put in the place of one that is there") {
  const Tensor x{{1, 2, 4}, {3, -1, 2}};
  const auto once = gradient_of([](const Tensor& v) { return layer_norm(v, {3}); }, x, Tensor{{1, 0, 0}, {0, 2, 0}});
  const auto twice = gradient_of([](const Tensor& v) { return v + layer_norm(v, {3}) + layer_norm(v, {3}); }, x,
                                 Tensor{{1, 0, 0}, {0, 2, 0}});
  check_close(twice, once * Real(2) + Tensor{{1, 0, 0}, {0, 2, 0}});
}

TEST_CASE("shapes that don't fit are refused") {
  const Tensor x = zeros({2, 3});
  check_refused([&] { layer_norm(x, {2}); }, "[layer_norm] the normalised shape must be that of x's last axes");
  check_refused([&] { layer_norm(x, {4, 2, 3}); }, "[layer_norm] the normalised shape");
  check_refused([&] { layer_norm(x, Shape{}); }, "[layer_norm] the normalised shape");
  check_refused([&] { layer_norm(x, {3}, ones({1})); }, "[layer_norm] weight and bias must have the normalised shape");
  check_refused([&] { layer_norm(x, {3}, ones({3}), zeros({2, 3})); }, "[layer_norm] weight and bias");
  check_refused([&] { layer_norm(x, {3}, {}, {}, Real(-1)); }, "[layer_norm] eps must not be negative");
  check_refused([&] { rms_norm(x, ones({2})); }, "[rms_norm] the normalised shape must be that of x's last axes");
  check_refused([&] { rms_norm(x, Tensor(1)); }, "[rms_norm] the normalised shape");
  check_refused([&] { rms_norm(x, {}); }, "undefined");
}

TEST_CASE("normalisation gives the same bits with any number of threads") {
  Rng rng(6);
  const std::vector<Tensor> inputs{Tensor(rng.normal({700, 256})), Tensor(rng.normal({256})),
                                   Tensor(rng.normal({256}))};
  const int before = threads();
  std::vector<std::vector<Tensor>> found;
  for (int count : {1, 2, 3}) {
    set_threads(count);
    found.push_back(gradients_of(norm_of, inputs, inputs[0]));
    found.back().push_back(norm_of(inputs));
  }
  set_threads(before);
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    CHECK(found[0][i].value() == found[1][i].value());
    CHECK(found[0][i].value() == found[2][i].value());
  }
}

TEST_CASE("without eps, rows of equal numbers have y = bias and no gradient") {
  const Tensor x = full({2, 3}, Real(0.1));
  const auto f = [](const Tensor& v) { return layer_norm(v, {3}, {}, Tensor{1, 2, 3}, 0); };
  check_close(f(x), Tensor{{1, 2, 3}, {1, 2, 3}});
  check_close(gradient_of(f, x, Tensor{{1, 2, 4}, {0, -1, 3}}), zeros({2, 3}));
  check_close(gradient_of([](const Tensor& v) { return rms_norm(v, ones({3}), 0); }, zeros({2, 3})), zeros({2, 3}));
  const auto twice = [&](const Tensor& v) { return Tape::open()->gradient(f(v), {v}, {ones({2, 3}), true, true})[0]; };
  check_close(gradient_of(twice, x), zeros({2, 3}));
}
