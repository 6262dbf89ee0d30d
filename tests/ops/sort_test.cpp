#include "tests/check.hpp"

using namespace tapegrad;

namespace {

std::vector<int> numbers(const Index& index) { return std::vector<int>(index.begin(), index.end()); }

}  // namespace

TEST_CASE("sort puts values in ascending order along an axis", "[sort]") {
  check_close(sort(Tensor{3, 1, 2}), Tensor{1, 2, 3});
  const Tensor x{{3, 1, 2}, {0, 5, -1}};
  check_close(sort(x), Tensor{{1, 2, 3}, {-1, 0, 5}});
  check_close(sort(x, 0), Tensor{{0, 1, -1}, {3, 5, 2}});
  check_close(sort(x, -2), sort(x, 0));
  check_close(sort(reshape(x, {2, 3, 1}), 1), reshape(sort(x, 1), {2, 3, 1}));
  check_close(sort(Tensor{5}), Tensor{5});
  CHECK(sort(zeros({2, 0})).shape() == Shape{2, 0});
  CHECK(sort(zeros({0, 2})).shape() == Shape{0, 2});
}

TEST_CASE("sort puts NaN last, behind infinity", "[sort]") {
  check_close(sort(Tensor{kNaN, 2, kInf, -kInf, kNaN, 1}), Tensor{-kInf, 1, 2, kInf, kNaN, kNaN});
  CHECK(numbers(argsort(Tensor{kNaN, 2, kInf, -kInf, kNaN, 1})) == std::vector<int>{3, 5, 1, 2, 0, 4});
}

TEST_CASE("argsort is stable", "[sort]") {
  CHECK(numbers(argsort(Tensor{1, 0, 1, 0, 1})) == std::vector<int>{1, 3, 0, 2, 4});
  CHECK(numbers(argsort(Tensor{0, Real(-0.0), 0})) == std::vector<int>{0, 1, 2});
  CHECK(numbers(argsort(Tensor{{3, 1}, {0, 5}}, 0)) == std::vector<int>{1, 0, 0, 1});
  const Index order = argsort(arange(1000, 0, -1));
  for (std::size_t i = 0; i < 1000; ++i) REQUIRE(order.data()[i] == static_cast<std::int64_t>(999 - i));
}

TEST_CASE("sort's gradient goes back to where each value came from", "[sort]") {
  const auto by_rank = [](const Tensor& x) { return sort(x) * Tensor{1, 10, 100}; };
  check_close(gradient_of(by_rank, Tensor{3, 1, 2}), Tensor{100, 1, 10});
  check_close(gradient_of(by_rank, Tensor{2, 1, 1}), Tensor{100, 1, 10});
  const Tensor x{{0.3, -1.2, 2.1}, {1.4, 0.2, -0.7}};
  for (const int axis : {0, 1}) {
    check_gradients([&](const std::vector<Tensor>& in) { return sort(in[0], axis) * sort(in[0] * in[0], axis); }, {x});
  }
}

TEST_CASE("sort refuses an axis that is not there", "[sort]") {
  check_refused([] { sort(Tensor{1, 2}, 1); }, "[sort] the axis must be at least -rank and below the rank");
  check_refused([] { sort(Tensor(1)); }, "[sort]");
  check_refused([] { argsort(Tensor{1, 2}, -2); }, "[argsort]");
}
