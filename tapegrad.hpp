/// Everything: `#include "tapegrad.hpp"`.
#pragma once

#include "autograd/ops.hpp"
#include "autograd/random.hpp"
