#include "autograd/mask.hpp"

#include <list>

#include "tests/catch.hpp"

using namespace tapegrad;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<int> elements(const Mask& mask) { return {mask.begin(), mask.end()}; }
using Ints = std::vector<int>;

}  // namespace

TEST_CASE("masks and indices are made from lists, shapes and containers", "[mask]") {
  CHECK(Mask().shape() == Shape{0});
  CHECK(Mask(Shape{2, 3}).size() == 6);
  CHECK(count_true(Mask(Shape{2, 3})) == 0);
  CHECK(Mask{true, false}.shape() == Shape{2});
  CHECK(Mask{{true, false, true}}.shape() == Shape{1, 3});
  CHECK(elements(Mask{{true, false}, {false, true}}) == Ints{1, 0, 0, 1});
  const Index index{{1, -2}, {3, 4}};
  CHECK(index.shape() == Shape{2, 2});
  CHECK(std::vector<std::int64_t>(index.begin(), index.end()) == std::vector<std::int64_t>{1, -2, 3, 4});
  CHECK(Index({5, 6}).shape() == Shape{2});
  CHECK(Index(Shape{3}, std::vector<int>{1, 2, 3}).data()[2] == 3);
  CHECK(Index(Shape{2, 1}, std::list<short>{7, 8}).data()[1] == 8);
  CHECK(elements(Mask(Shape{2}, std::vector<bool>{false, true})) == Ints{0, 1});
  CHECK(Index{{1}, {2}}.shape() == Shape{2, 1});
  CHECK(Index{{1}}.shape() == Shape{1, 1});
  CHECK(Index{1}.shape() == Shape{1});
  CHECK(Index(Shape{1}, Index{{7}}).data()[0] == 7);
  CHECK(Index().size() == 0);
  CHECK(Index(Shape{}).size() == 1);
  CHECK(index.rank() == 2);
}

TEST_CASE("elements that do not fill the shape are refused", "[mask]") {
  CHECK_THROWS_WITH(Index(Shape{3}, std::vector<int>{1, 2}),
                    "[PlainArray] the number of elements must be the shape's; got 2 and (3)");
  CHECK_THROWS_AS(Index(Shape{1}, std::vector<int>{1, 2}), Error);
  CHECK_THROWS_WITH((Index{{1, 2}, {3}}), ContainsSubstring("rows must be equally long; got 1 and 2"));
  CHECK_THROWS_WITH((Mask{{true}, {true, false}}), ContainsSubstring("rows must be equally long"));
}

TEST_CASE("masks and indices are made of integers and truth values only") {
  CHECK_FALSE(std::is_constructible_v<Index, Shape, std::vector<double>>);
  CHECK_FALSE(std::is_constructible_v<Mask, Shape, std::vector<float>>);
  CHECK_FALSE(std::is_constructible_v<Index::Number, double>);
  CHECK(std::is_constructible_v<Index, Shape, std::vector<bool>>);
  CHECK(std::is_constructible_v<Mask, Shape, std::vector<std::int64_t>>);
}

TEST_CASE("a copy of a mask has its own elements once one of the two is written to", "[mask]") {
  Mask mask{true, false};
  const Mask copy = mask;
  CHECK(static_cast<const Mask&>(mask).data() == copy.data());
  mask.data()[1] = 1;
  CHECK(elements(copy) == Ints{1, 0});
  CHECK(elements(mask) == Ints{1, 1});
}

TEST_CASE("masks combine elementwise and broadcast as NumPy does", "[mask]") {
  const Mask column{{true}, {false}};
  const Mask row{true, false, true};
  CHECK((column && row).shape() == Shape{2, 3});
  CHECK(elements(column && row) == Ints{1, 0, 1, 0, 0, 0});
  CHECK(elements(column || row) == Ints{1, 1, 1, 1, 0, 1});
  CHECK(elements(!row) == Ints{0, 1, 0});
  CHECK(elements(Mask(Shape{2, 1, 2}) || Mask{{true, false}, {false, true}}) == Ints{1, 0, 0, 1, 1, 0, 0, 1});
  CHECK(elements(row && !row) == Ints{0, 0, 0});
  CHECK((Mask(Shape{0, 3}) && row).shape() == Shape{0, 3});
  CHECK_THROWS_AS((row && Mask{true, false}), Error);
  CHECK_THROWS_AS((row || Mask{true, false}), Error);
}

TEST_CASE("bytes other than 1 count as true", "[mask]") {
  Mask odd(Shape{3});
  odd.data()[1] = 2;
  odd.data()[2] = 255;
  CHECK(count_true(odd) == 2);
  CHECK(elements(!odd) == Ints{1, 0, 0});
  CHECK(elements(odd && Mask{true, true, true}) == Ints{0, 1, 1});
  CHECK(elements(Mask(Shape{4}, std::vector<int>{0, 2, 256, -1})) == Ints{0, 1, 1, 1});
}

TEST_CASE("true elements are counted", "[mask]") {
  CHECK(count_true(Mask()) == 0);
  CHECK(count_true(Mask{true, false, true}) == 2);
  Mask many(Shape{1000, 1001});
  std::fill(many.data(), many.data() + many.size(), std::uint8_t{1});
  CHECK(count_true(many) == 1001000);
}
