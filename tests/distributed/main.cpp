// Run by mpirun: every rank runs the same tests.
#define TAPEGRAD_TEST_MAIN
#include "tests/distributed/ranks.hpp"

tapegrad::Ranks& the_ranks() {
  static tapegrad::Ranks ranks;
  return ranks;
}

int main(int argc, char** argv) {
  the_ranks();
  return Catch::Session().run(argc, argv);
}
