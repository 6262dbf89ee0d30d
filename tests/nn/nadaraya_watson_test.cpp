#include "nn/nadaraya_watson.hpp"

#include <limits>

#include "tests/catch.hpp"

using namespace tapegrad;
using nn::Kernel;

namespace {

/// Weights and predictions by the definition, one number at a time, in double.
std::vector<double> predict(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& w,
                            std::vector<double>& weights) {
  const std::size_t m = k.extent(1);
  std::vector<double> predictions;
  for (std::size_t i = 0; i < q.size(); ++i) {
    double total = 0;
    double prediction = 0;
    for (std::size_t j = 0; j < m; ++j) {
      const double u = (q.value()(i) - k.value()(i, j)) * w.value()(w.size() == 1 ? 0 : j);
      weights.push_back(std::exp(-u * u / 2));
      total += weights.back();
    }
    for (std::size_t j = 0; j < m; ++j) {
      weights[i * m + j] /= total;
      prediction += weights[i * m + j] * v.value()(i, j);
    }
    predictions.push_back(prediction);
  }
  return predictions;
}

void check_row(const Tensor& attention, std::size_t row, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(attention.value()(row, i) == Approx(expected[i]).margin(1e-7));
  }
}

}  // namespace

TEST_CASE("NadarayaWatson averages values by its attention weights, for one weight a key or one for all") {
  Rng rng(3);
  const Tensor queries = rng.uniform({5}, 0, 5);
  const Tensor keys = rng.uniform({5, 4}, 0, 5);
  const Tensor values = rng.normal({5, 4});
  for (std::size_t weights : {std::size_t{4}, std::size_t{1}}) {
    nn::NadarayaWatson net(weights, rng);
    REQUIRE(net.w.shape() == Shape{weights});
    CHECK(net.named_parameters()[0].first == "w");
    for (Real w : net.w.value().storage()) CHECK((w >= 0 && w < 1));
    std::vector<double> expected_weights;
    const std::vector<double> expected = predict(queries, keys, values, net.w, expected_weights);
    Tape tape;
    const Tensor predictions = net(queries, keys, values);
    REQUIRE(predictions.shape() == Shape{5});
    for (std::size_t i = 0; i < 5; ++i) CHECK(predictions.value()(i) == Approx(expected[i]));
    const Tensor attention = net.attention_weights();
    REQUIRE(attention.shape() == Shape{5, 4});
    CHECK(!attention.requires_grad());
    for (std::size_t i = 0; i < 20; ++i) CHECK(attention.value().data()[i] == Approx(expected_weights[i]).margin(1e-9));
    tape.backward(sum(predictions));
    CHECK(net.w.grad().shape() == net.w.shape());
    CHECK(net.attention_weights().value() == attention.value());  // it outlives the tape
  }
}

TEST_CASE("NadarayaWatson refuses what does not fit") {
  Rng rng;
  nn::NadarayaWatson net(4, rng);
  const Tensor queries = zeros({5});
  CHECK_THROWS_AS(net(queries, zeros({5, 3}), zeros({5, 3})), Error);
  CHECK_THROWS_AS(net(queries, zeros({4, 4}), zeros({4, 4})), Error);
  CHECK_THROWS_AS(net(queries, zeros({5, 4}), zeros({5, 3})), Error);
  CHECK_THROWS_AS(net(zeros({5, 1}), zeros({5, 4}), zeros({5, 4})), Error);
  CHECK_THROWS_AS(nn::NadarayaWatson(1, rng)(queries, zeros({5, 0}), zeros({5, 0})), Error);
  CHECK_THROWS_AS(nn::NadarayaWatson(0, rng), Error);
  CHECK_THROWS_AS(net.attention_weights(), Error);  // before the first call
}

TEST_CASE("leave_one_out leaves each point out of its own row") {
  CHECK(nn::leave_one_out({1, 2, 3, 4}).value() == Tensor{{2, 3, 4}, {1, 3, 4}, {1, 2, 4}, {1, 2, 3}}.value());
  CHECK_THROWS_AS(nn::leave_one_out({1}), Error);
  CHECK_THROWS_AS(nn::leave_one_out({{1, 2}}), Error);
}

TEST_CASE("kernel_attention weighs keys by the kernel of choice") {
  const Tensor queries{0, 10};
  const Tensor keys{0, 1, 3};
  SECTION("gaussian, also far from every key") {
    const double a = std::exp(-0.125);
    const double b = std::exp(-1.125);
    check_row(kernel_attention(queries, keys, Kernel::gaussian, 2), 0,
              {1 / (1 + a + b), a / (1 + a + b), b / (1 + a + b)});
    check_row(kernel_attention({1000}, keys, Kernel::gaussian), 0, {0, 0, 1});
  }
  SECTION("boxcar; a query far from every key gets zeros") {
    const Tensor attention = kernel_attention(queries, keys, Kernel::boxcar, 2);
    check_row(attention, 0, {0.5, 0.5, 0});
    check_row(attention, 1, {0, 0, 0});
    check_row(kernel_attention(queries, keys, Kernel::boxcar), 0, {1, 0, 0});  // the edge is outside
  }
  SECTION("epanechnikov") {
    const Tensor attention = kernel_attention(queries, keys, Kernel::epanechnikov, 4);
    check_row(attention, 0, {0.5, 0.375, 0.125});
    check_row(attention, 1, {0, 0, 0});
  }
  SECTION("constant is average pooling") {
    const Tensor attention = kernel_attention(queries, keys, Kernel::constant);
    check_row(attention, 1, {1.0 / 3, 1.0 / 3, 1.0 / 3});
    CHECK(matmul(attention, Tensor{3, 6, 9}).value()(1) == Approx(6));
  }
  SECTION("NaN stays NaN") {
    const Tensor nan{std::numeric_limits<Real>::quiet_NaN()};
    for (Kernel kernel : {Kernel::gaussian, Kernel::boxcar, Kernel::epanechnikov}) {
      CHECK(std::isnan(kernel_attention(nan, keys, kernel).value()(0, 0)));
    }
  }
  SECTION("refusals") {
    CHECK_THROWS_AS(kernel_attention(queries, keys, Kernel::boxcar, 0), Error);
    CHECK_THROWS_AS(kernel_attention(queries, keys, Kernel::boxcar, INFINITY), Error);
    CHECK_THROWS_AS(kernel_attention(queries, keys, Kernel::boxcar, 1e-310), Error);
    CHECK_THROWS_AS(kernel_attention(queries, zeros({0}), Kernel::constant), Error);
    CHECK_THROWS_AS(kernel_attention({{1}}, keys, Kernel::constant), Error);
  }
}

TEST_CASE("NadarayaWatson has no attention weights before its first call") {
  Rng rng(4);
  nn::NadarayaWatson model(1, rng);
  CHECK_THROWS_WITH(model.attention_weights(), "[attention_weights] there are no weights yet: call the module first");
  model(zeros({2}), zeros({2, 3}), zeros({2, 3}));
  CHECK(model.attention_weights().shape() == Shape{2, 3});
}

TEST_CASE("kernel_attention's gaussian rows sum to 1 whatever the distances") {
  const Tensor queries{0, Real(1e30), 100};
  const Tensor keys{1, 1, Real(-3e30)};
  for (double width : {1e-300, 1e-50, 1.0, 1e30, 1e300}) {
    const Array attention = kernel_attention(queries, keys, Kernel::gaussian, width).value();
    CAPTURE(width);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(attention(i, 0) == attention(i, 1));
      CHECK(attention(i, 0) + attention(i, 1) + attention(i, 2) == Approx(1));
    }
  }
}
