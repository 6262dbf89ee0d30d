/// Everything: `#include "tapegrad.hpp"`.
#pragma once

#include "autograd/ops.hpp"
#include "autograd/random.hpp"
#include "nn/loss.hpp"
#include "nn/module.hpp"
#include "nn/nadaraya_watson.hpp"
#include "optim/sgd.hpp"
