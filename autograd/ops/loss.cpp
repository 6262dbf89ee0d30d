#include "autograd/kernels.hpp"

namespace TAPEGRAD {
namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::sum ? sum(losses) : mean(losses);
}

}  // namespace

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  require(prediction.shape() == target.shape(), "mse_loss", "prediction and target must have equal shapes",
          prediction.shape(), target.shape());
  return reduced(square(prediction - target), reduction);
}

}  // namespace TAPEGRAD
