#define TAPEGRAD_TEST_MAIN
#include "tests/catch.hpp"

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
