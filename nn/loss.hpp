/// Losses as objects: a function of autograd/ops.hpp with its settings.
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

/// `cross_entropy` with its options: `nn::CrossEntropyLoss loss{{.ignore_index = padding}}`. As PyTorch's, but that the
/// classes are the last axis unless class_axis says otherwise, and that the mean of no labels is 0.
struct CrossEntropyLoss {
  CrossEntropyOptions options = {};
  Tensor operator()(const Tensor& logits, const Index& labels) const { return cross_entropy(logits, labels, options); }
};

}  // namespace TAPEGRAD::nn
