#pragma once

#include "distributed/ranks.hpp"
#include "tests/catch.hpp"

/// Those that mpirun has started.
tapegrad::Ranks& the_ranks();
