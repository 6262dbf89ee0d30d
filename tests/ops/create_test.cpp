#include "tests/check.hpp"

using namespace tapegrad;

TEST_CASE("zeros, ones, full and eye", "[create]") {
  check_close(zeros({1, 2}), Tensor{{0, 0}});
  check_close(ones({2}), Tensor{1, 1});
  check_close(full({2, 1}, 3), Tensor{{3}, {3}});
  CHECK(full({}, 3).item() == 3);
  CHECK(zeros({2, 0, 3}).shape() == Shape{2, 0, 3});
  check_close(eye(3), Tensor{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
  CHECK(eye(0).shape() == Shape{0, 0});
  CHECK_FALSE(ones({2}).requires_grad());
  const std::size_t huge = std::size_t{1} << 32;
  check_refused([&] { zeros({huge, huge}); }, "[zeros] the array would be too large; got (4294967296,4294967296)");
  check_refused([&] { ones({huge, huge, 2}); }, "[ones]");
  check_refused([&] { full({huge, 0, huge}, 1); }, "[full]");
  check_refused([&] { eye(huge); }, "[eye]");
}

TEST_CASE("arange counts", "[create]") {
  check_close(arange(std::size_t{4}), Tensor{0, 1, 2, 3});
  check_close(arange(1, 4), Tensor{1, 2, 3});
  check_close(arange(1, 4, 2), Tensor{1, 3});
  check_close(arange(4, 1, -2), Tensor{4, 2});
  check_close(arange(0, 1, Real(0.25)), Tensor{0, 0.25, 0.5, 0.75});
  CHECK(arange(0, 6, Real(0.1)).size() == 60);
  for (int tenths : {3, 6, 11, 12, 17}) {  // no element is stop
    const Real stop = static_cast<Real>(tenths) / 10;
    const Tensor up = arange(0, stop, Real(0.1));
    CHECK(up.size() == static_cast<std::size_t>(tenths));
    CHECK(up.value().data()[tenths - 1] < stop);
    CHECK(arange(0, -stop, Real(-0.1)).size() == static_cast<std::size_t>(tenths));
  }
  CHECK(arange(std::size_t{0}).shape() == Shape{0});
  CHECK(arange(1, 1).shape() == Shape{0});
  CHECK(arange(1, 0).shape() == Shape{0});
  CHECK(arange(0, 1, -1).shape() == Shape{0});
  check_refused([] { arange(0, 1, 0); }, "[arange] the step must be finite and not 0; got 0");
  check_refused([] { arange(0, kInf); }, "[arange]");
  check_refused([] { arange(0, kNaN); }, "[arange]");
  check_refused([] { arange(0, 1, kNaN); }, "[arange]");
  check_refused([] { arange(0, Real(1e30)); }, "[arange] the array would be too large");
  check_refused([] { arange(static_cast<std::size_t>(-1)); }, "[arange] the array would be too large");
}

TEST_CASE("one_hot puts a one at each index", "[create]") {
  check_close(one_hot({2, 0}, 3), Tensor{{0, 0, 1}, {1, 0, 0}});
  check_close(one_hot(Index(Shape{2, 1}, std::vector<int>{1, 0}), 2), Tensor{{{0, 1}}, {{1, 0}}});
  check_close(one_hot(Index(Shape{}), 2), Tensor{1, 0});
  CHECK(one_hot(Index(Shape{0}), 0).shape() == Shape{0, 0});
  check_refused([] { one_hot({0, 3}, 3); }, "[one_hot] an index must be at least 0 and below the number of classes");
  check_refused([] { one_hot({-1}, 3); }, "[one_hot]");
  check_refused([] { one_hot({0}, 0); }, "[one_hot]");
  check_refused([] { one_hot({0, 1}, std::size_t{1} << 62); }, "[one_hot] the array would be too large");
}
