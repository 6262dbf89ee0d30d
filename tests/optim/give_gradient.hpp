#pragma once

#include "autograd/ops.hpp"

/// Puts a gradient of any numbers on a parameter.
inline void give_gradient(tapegrad::Parameter& p, const tapegrad::Tensor& gradient) {
  p.zero_grad();
  tapegrad::Tape tape;
  tape.backward(sum(p * gradient));
}
