/// A loss as an object: mse_loss with its setting.
#pragma once

#include "autograd/ops.hpp"

namespace TAPEGRAD::nn {

/// (prediction - target)^2, reduced; shapes must be equal. As PyTorch's MSELoss.
struct MSELoss {
  Reduction reduction = Reduction::mean;
  Tensor operator()(const Tensor& prediction, const Tensor& target) const {
    return mse_loss(prediction, target, reduction);
  }
};

}  // namespace TAPEGRAD::nn
