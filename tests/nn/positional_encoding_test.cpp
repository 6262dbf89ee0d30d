#include "nn/positional_encoding.hpp"

#include "tests/check.hpp"

using namespace tapegrad;

TEST_CASE("sinusoids of odd and even widths") {
  // Position 1, to six decimals.
  const Tensor five = slice(nn::sinusoids(2, 5), 0, 1, 2);
  const Tensor six = slice(nn::sinusoids(2, 6), 0, 1, 2);
  check_close(five, Tensor{{0.841471, 0.540302, 0.025116, 0.999685, 0.000631}}, 5e-7);
  check_close(six, Tensor{{0.841471, 0.540302, 0.046399, 0.998923, 0.002154, 0.999998}}, 5e-7);
}

TEST_CASE("sinusoids are rounded from double, whatever the position") {
  for (std::size_t d : {1u, 2u, 7u, 64u}) {
    for (std::int64_t offset : {0, 1, 399, 100000, -3}) {
      const Tensor table = nn::sinusoids(4, d, offset);
      CHECK(table.shape() == Shape{4, d});
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
          CAPTURE(d, offset, i, j);
          const double angle = static_cast<double>(offset + static_cast<std::int64_t>(i)) /
                               std::pow(10000.0, static_cast<double>(j - j % 2) / static_cast<double>(d));
          const double expected = j % 2 == 0 ? std::sin(angle) : std::cos(angle);
          REQUIRE(std::abs(table.value()(i, j) - expected) < (kDouble ? 1e-10 : 6e-8));
        }
      }
    }
  }
  CHECK(nn::sinusoids(0, 3).shape() == Shape{0, 3});
}

TEST_CASE("an offset takes later rows") {
  check_close(nn::sinusoids(5, 9, 7), slice(nn::sinusoids(12, 9), 0, 7, 12), 0);
}

TEST_CASE("a rotation moves every position by the offset") {
  for (std::size_t d : {2u, 6u, 32u}) {
    for (int delta : {0, 1, -4, 50}) {
      CAPTURE(d, delta);
      const Tensor turn = nn::rotation(delta, d);
      const Tensor moved = matmul(nn::sinusoids(20, d), turn, Transpose::no, Transpose::yes);
      check_close(moved, nn::sinusoids(20, d, delta), kDouble ? 1e-12 : 1e-6);
      check_close(matmul(turn, turn, Transpose::yes), eye(d), kDouble ? 1e-12 : 1e-6);
      check_close(matmul(turn, nn::rotation(-delta, d)), eye(d), kDouble ? 1e-12 : 1e-6);
    }
  }
}

TEST_CASE("the dot product of two positions depends on their distance only") {
  for (std::size_t d : {2u, 6u, 32u}) {
    const Tensor table = nn::sinusoids(40, d, 5);
    const Tensor products = matmul(table, table, Transpose::no, Transpose::yes);
    for (std::size_t i = 0; i < 40; ++i) {
      for (std::size_t k = 0; k < 40; ++k) {
        CAPTURE(d, i, k);
        const double delta = static_cast<double>(k) - static_cast<double>(i);
        REQUIRE(products.value()(i, k) == Approx(nn::offset_product(delta, d)).margin(kDouble ? 1e-10 : 2e-5));
      }
    }
    CHECK(nn::offset_product(0, d) == static_cast<double>(d) / 2);
    CHECK(nn::offset_product(-3, d) == nn::offset_product(3, d));
  }
}

TEST_CASE("PositionalEncoding adds the sinusoids at any offset") {
  Rng rng(1);
  nn::PositionalEncoding encode(5);
  CHECK(encode.parameter_count() == 0);
  const Tensor x(rng.normal({2, 3, 4, 5}));
  for (std::int64_t offset : {0, 9, 9, 0}) check_close(encode(x, offset), x + nn::sinusoids(4, 5, offset), 0);
  const Tensor longer(rng.normal({7, 5}));
  check_close(encode(longer), longer + nn::sinusoids(7, 5), 0);
  CHECK(encode(zeros({0, 4, 5})).shape() == Shape{0, 4, 5});
  check_gradients([&](const auto& xs) { return square(encode(xs[0], 2)); }, {Tensor(rng.normal({2, 3, 5}))});
}

TEST_CASE("PositionalEncoding drops elements in training only") {
  Rng rng(3);
  nn::PositionalEncoding encode(50, 0.25, rng);
  const Tensor x = full({40, 50}, 3);
  const Tensor whole = x + nn::sinusoids(40, 50);
  const Tensor y = encode(x);
  const Mask kept = y != zeros({});
  CHECK(static_cast<double>(count_true(kept)) / 2000 == Approx(0.75).margin(0.04));
  check_close(y, keep_where(whole / Real(0.75), kept), 4 * kTight);
  encode.eval();
  check_close(encode(x), whole, 0);
  check_refused([&] { nn::PositionalEncoding(4, 1.5, rng); }, "[Dropout] p must be from 0 to 1");
}

TEST_CASE("LearnedPositionalEncoding adds its rows and learns them") {
  Rng rng(2);
  nn::LearnedPositionalEncoding encode(200, 50, rng);
  CHECK(encode.named_parameters()[0].first == "weight");
  CHECK(std::sqrt(var(encode.weight).item()) == Approx(0.02).epsilon(0.03));
  const Tensor x(rng.normal({2, 3, 50}));
  check_close(encode(x, 197), x + slice(encode.weight.detach(), 0, 197, 200), 0);
  Tape tape;
  tape.backward(sum(encode(x, 1)));
  const Tensor grad(encode.weight.grad());
  check_close(slice(grad, 0, 1, 4), full({3, 50}, 2), 0);  // once for each of the batch
  CHECK(sum(abs(grad)).item() == 300);
}

TEST_CASE("positional encodings refuse what does not fit") {
  Rng rng;
  check_refused([] { nn::rotation(1, 5); }, "[rotation] the width must be even");
  check_refused([] { nn::rotation(1, 0); }, "[rotation] the width must be even");
  check_refused([] { nn::rotation(std::nan(""), 4); }, "[rotation] the offset must be finite");
  check_refused([] { nn::offset_product(1, 3); }, "[offset_product] the width must be even");
  check_refused([] { nn::sinusoids(std::size_t{1} << 40, std::size_t{1} << 40); }, "[sinusoids]");
  check_refused([] { nn::PositionalEncoding(0); }, "[PositionalEncoding] the width");
  nn::PositionalEncoding encode(4);
  check_refused([&] { encode(zeros({2, 3})); }, "[PositionalEncoding] x must be (...,positions,width)");
  check_refused([&] { encode(zeros({4})); }, "[PositionalEncoding] x must be");
  check_refused([&] { nn::LearnedPositionalEncoding(0, 4, rng); }, "[LearnedPositionalEncoding] length and width");
  nn::LearnedPositionalEncoding learned(6, 4, rng);
  check_refused([&] { learned(zeros({7, 4})); }, "[LearnedPositionalEncoding] the positions");
  check_refused([&] { learned(zeros({3, 4}), 4); }, "[LearnedPositionalEncoding] the positions");
  check_refused([&] { learned(zeros({3, 4}), -1); }, "[LearnedPositionalEncoding] the positions");
  check_refused([&] { learned(zeros({3, 5})); }, "[LearnedPositionalEncoding] x must be");
}
