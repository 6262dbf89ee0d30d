/// Everything: `#include "tapegrad.hpp"`.
#pragma once

#include "autograd/ops.hpp"
#include "autograd/random.hpp"
#include "autograd/threads.hpp"
#include "nn/attention.hpp"
#include "nn/causality.hpp"
#include "nn/conv1d.hpp"
#include "nn/dropout.hpp"
#include "nn/gru.hpp"
#include "nn/linear.hpp"
#include "nn/loss.hpp"
#include "nn/module.hpp"
#include "nn/nadaraya_watson.hpp"
#include "nn/positional_encoding.hpp"
#include "optim/adam.hpp"
#include "optim/sgd.hpp"
