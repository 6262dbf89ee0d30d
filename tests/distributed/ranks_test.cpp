#include "tests/distributed/ranks.hpp"

#include <cstdlib>
#include <numeric>

using namespace tapegrad;

TEST_CASE("there are as many ranks as mpirun has started", "[distributed]") {
  const char* started = std::getenv("OMPI_COMM_WORLD_SIZE");
  CHECK(the_ranks().size() == (started == nullptr ? 1 : std::atoi(started)));
  CHECK(the_ranks().first() == (the_ranks().rank() == 0));
}

TEST_CASE("shares cover everything once and differ by one at most", "[distributed]") {
  const auto ranks = static_cast<std::size_t>(the_ranks().size());
  for (const std::size_t count : {0, 1, 2, 3, 7, 8, 1000}) {
    const Share share = the_ranks().share(count);
    CHECK((share.size() == count / ranks || share.size() == count / ranks + 1));
    const std::vector<double> begins = the_ranks().gather(double(share.begin));
    const std::vector<double> ends = the_ranks().gather(double(share.end));
    CHECK(begins.front() == 0);
    CHECK(ends.back() == double(count));
    for (std::size_t i = 1; i < ranks; ++i) CHECK(begins[i] == ends[i - 1]);
  }
}

TEST_CASE("the first rank's bytes and text go to all", "[distributed]") {
  std::vector<int> numbers(1000, the_ranks().rank());
  the_ranks().broadcast(numbers.data(), numbers.size() * sizeof(int));
  CHECK(numbers == std::vector<int>(1000, 0));
  CHECK(the_ranks().broadcast(the_ranks().first() ? std::string("the first's") : std::string(50, 'x')) ==
        "the first's");
  CHECK(the_ranks().broadcast(the_ranks().first() ? std::string() : std::string("x")).empty());
}

TEST_CASE("each rank's number comes to all", "[distributed]") {
  std::vector<double> expected(static_cast<std::size_t>(the_ranks().size()));
  std::iota(expected.begin(), expected.end(), 0.5);
  CHECK(the_ranks().gather(the_ranks().rank() + 0.5) == expected);
}

TEMPLATE_TEST_CASE("sums that were begun are there after the wait", "[distributed]", float, double) {
  const int ranks = the_ranks().size();
  std::vector<TestType> one(100'000), other(3);
  for (std::size_t i = 0; i < one.size(); ++i) one[i] = TestType(i % 100 + std::size_t(the_ranks().rank()));
  for (TestType& number : other) number = TestType(the_ranks().rank());
  the_ranks().start_sum(one.data(), one.size());
  the_ranks().progress();
  the_ranks().start_sum(other.data(), other.size());
  the_ranks().start_sum(other.data(), 0);
  the_ranks().wait();
  the_ranks().wait();  // nothing to wait for
  const TestType of_ranks = TestType(ranks * (ranks - 1) / 2);
  bool right = true;
  for (std::size_t i = 0; i < one.size(); ++i)
    right = right && one[i] == TestType(ranks) * TestType(i % 100) + of_ranks;
  CHECK(right);
  CHECK(other == std::vector<TestType>(3, of_ranks));
}
