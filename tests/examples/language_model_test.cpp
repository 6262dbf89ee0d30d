#include "examples/language_model/sampling.hpp"
#include "tests/catch.hpp"

using namespace language_model;

namespace {

/// How often each of five tokens is drawn, in ten thousand.
std::vector<int> drawn(const Sampling& how) {
  const tapegrad::Real logits[] = {0, 2, -1, 1, 3};
  tapegrad::Rng rng(1);
  std::vector<int> counts(5);
  for (int i = 0; i < 10000; ++i) ++counts[std::size_t(sample(logits, 5, how, rng))];
  return counts;
}

}  // namespace

TEST_CASE("top-k leaves the likeliest, with the probabilities that they have among themselves", "[language_model]") {
  const std::vector<int> three = drawn({1, 3});
  CHECK(three[0] == 0);
  CHECK(three[2] == 0);
  const double sum = std::exp(3) + std::exp(2) + std::exp(1);
  CHECK(std::abs(three[4] - 1e4 * std::exp(3) / sum) < 150);
  CHECK(std::abs(three[1] - 1e4 * std::exp(2) / sum) < 150);
  CHECK(std::abs(three[3] - 1e4 * std::exp(1) / sum) < 150);
  const std::vector<int> two = drawn({1000, 2});
  CHECK(two[4] + two[1] == 10000);
  CHECK(std::abs(two[4] - 5000) < 150);
  CHECK(drawn({1, 1})[4] == 10000);
}

TEST_CASE("nothing is drawn by scores that are not finite", "[language_model]") {
  const tapegrad::Real logits[] = {0, std::numeric_limits<tapegrad::Real>::quiet_NaN(), 1};
  tapegrad::Rng rng(1);
  CHECK_THROWS_AS(sample(logits, 3, {0, 0}, rng), std::runtime_error);
}

TEST_CASE("without top-k all are drawn, and at temperature 0 the likeliest", "[language_model]") {
  const std::vector<int> all = drawn({1000, 0});
  CHECK(*std::min_element(all.begin(), all.end()) > 1800);
  CHECK(drawn({1, 0})[2] > 0);
  CHECK(drawn({1, 99}) == drawn({1, 0}));
  CHECK(drawn({0, 0})[4] == 10000);
}
