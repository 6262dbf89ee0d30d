#include "autograd/random.hpp"

#include <algorithm>
#include <limits>

#include "tests/catch.hpp"

using namespace tapegrad;

TEST_CASE("the generator gives the published numbers of xoshiro256++", "[random]") {
  Rng rng;
  rng.set_state({1, 2, 3, 4});
  const std::uint64_t published[] = {41943041,
                                     58720359,
                                     3588806011781223,
                                     3591011842654386,
                                     9228616714210784205u,
                                     9973669472204895162u,
                                     14011001112246962877u,
                                     12406186145184390807u,
                                     15849039046786891736u,
                                     10450023813501588000u};
  for (std::uint64_t number : published) CHECK(rng.bits() == number);
}

TEST_CASE("the seed fills the state by splitmix64", "[random]") {
  const Rng rng(0);
  CHECK(rng.state()[0] == 0xe220a8397b1dcdafu);
  CHECK(rng.state()[1] == 0x6e789e6aa1b965f4u);
  CHECK(rng.state()[2] == 0x06c45d188009454fu);
  CHECK(rng.state()[3] == 0xf88bb8a8724c81ecu);
}

TEST_CASE("the same seed gives the same numbers, another seed others", "[random]") {
  Rng a(7), b(7), c(8);
  CHECK(a.normal(Shape{5, 3}).storage() == b.normal(Shape{5, 3}).storage());
  CHECK(a.permutation(20) == b.permutation(20));
  CHECK(a.bits() == b.bits());
  CHECK(a.bits() != c.bits());
}

TEST_CASE("a generator goes on from a kept state", "[random]") {
  Rng a(3);
  a.normal(Shape{7});
  const auto& state = a.state();
  Rng b(99);
  b.set_state(state);
  for (int i = 0; i < 10; ++i) {
    CHECK(a.normal() == b.normal());
    CHECK(a.uniform() == b.uniform());
  }
  CHECK_THROWS_WITH(b.set_state({0, 0, 0, 0}), "[Rng::set_state] some word of the state must not be zero");
}

TEST_CASE("uniform numbers fill their range evenly and stay inside", "[random]") {
  Rng rng(1);
  const Array x = rng.uniform(Shape{200000}, -2, 3);
  double total = 0, squares = 0;
  std::vector<int> bins(10);
  for (Real v : x.storage()) {
    REQUIRE((v >= -2 && v < 3));
    total += v;
    squares += double(v) * v;
    ++bins[static_cast<std::size_t>((v + 2) * 2)];
  }
  CHECK(total / 200000 == Approx(0.5).margin(0.02));
  CHECK(squares / 200000 - 0.25 == Approx(25.0 / 12).epsilon(0.02));
  for (int bin : bins) CHECK(std::abs(bin - 20000) < 700);  // five standard deviations
}

TEST_CASE("rounding does not carry a uniform number up to the end of its range", "[random]") {
  Rng rng(2);
  const double low = 1, high = std::nextafter(Real(1), Real(2));  // every draw rounds to one of the two
  const Array narrow = rng.uniform(Shape{100}, low, high);
  const Array empty = rng.uniform(Shape{3}, 4, 4);
  for (Real v : narrow.storage()) REQUIRE(v == Real(1));
  for (Real v : empty.storage()) CHECK(v == 4);
  CHECK_THROWS_WITH(rng.uniform(Shape{1}, 2, 1), "[Rng::uniform] low must be at most high; got 2 and 1");
  CHECK_THROWS_AS(rng.uniform(Shape{1}, 0, std::numeric_limits<double>::quiet_NaN()), Error);
}

TEST_CASE("ranges and deviations that are not finite are refused", "[random]") {
  Rng rng(2);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(rng.uniform(Shape{1}, -inf, inf),
                    "[Rng::uniform] low, high and their difference must be finite; got -inf and inf");
  CHECK_THROWS_AS(rng.uniform(Shape{1}, -1.5e308, 1.5e308), Error);
  CHECK_THROWS_WITH(rng.normal(Shape{1}, nan, 1), "[Rng::normal] mean and deviation must be finite; got nan and 1");
  CHECK_THROWS_AS(rng.normal(Shape{1}, 0, inf), Error);
}

TEST_CASE("normal numbers have their mean, deviation and tails", "[random]") {
  Rng rng(4);
  const Array x = rng.normal(Shape{200000}, 3, 2);
  double total = 0, squares = 0;
  int beyond = 0;
  for (Real v : x.storage()) {
    total += v;
    squares += (v - 3.0) * (v - 3.0);
    beyond += std::abs(v - 3) > 4;  // two deviations
  }
  CHECK(total / 200000 == Approx(3).margin(0.03));
  CHECK(squares / 200000 == Approx(4).epsilon(0.02));
  CHECK(beyond / 200000.0 == Approx(0.0455).margin(0.003));
  CHECK_THROWS_AS(rng.normal(Shape{1}, 0, -1), Error);
}

TEST_CASE("integers below a bound are all drawn about equally often", "[random]") {
  Rng rng(5);
  std::vector<int> bins(7);
  for (int i = 0; i < 70000; ++i) ++bins[rng.below(7)];
  for (int bin : bins) CHECK(std::abs(bin - 10000) < 500);
  for (int i = 0; i < 10; ++i) CHECK(rng.below(1) == 0);
  const std::uint64_t huge = (std::uint64_t{1} << 63) + 1;  // here plain remainders would be very uneven
  int upper = 0;
  for (int i = 0; i < 1000; ++i) upper += rng.below(huge) >= huge / 2;
  CHECK(std::abs(upper - 500) < 80);
  CHECK_THROWS_WITH(rng.below(0), "[Rng::below] the bound must be positive; got 0");
}

TEST_CASE("a permutation has every number once, each place alike", "[random]") {
  Rng rng(6);
  std::vector<std::int64_t> order = rng.permutation(100);
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  CHECK(rng.permutation(0).empty());
  CHECK(rng.permutation(1) == std::vector<std::int64_t>{0});
  int orders[3] = {};
  for (int i = 0; i < 3000; ++i) ++orders[rng.permutation(3)[0]];
  for (int seen : orders) CHECK(std::abs(seen - 1000) < 130);
}
