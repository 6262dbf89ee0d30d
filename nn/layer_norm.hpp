/// LayerNorm and RMSNorm: each position's features brought to one scale, with gains that are learned.
#pragma once

#include "nn/module.hpp"

namespace TAPEGRAD::nn {

/// `layer_norm` over the last axes, those of normalized_shape. Names and first values as PyTorch's LayerNorm: weight
/// ones and bias zeros, both of normalized_shape.
class LayerNorm : public Module {
 public:
  /// Refuses a shape without an axis.
  explicit LayerNorm(const Shape& normalized_shape, Real eps = Real(1e-5), bool with_bias = true) : eps_(eps) {
    require(!normalized_shape.empty(), "LayerNorm", "the normalised shape must have an axis", normalized_shape);
    weight = param("weight", ones(normalized_shape));
    if (with_bias) bias = param("bias", zeros(normalized_shape));
  }
  /// Over the last axis only.
  explicit LayerNorm(std::size_t width, Real eps = Real(1e-5), bool with_bias = true)
      : LayerNorm(Shape{width}, eps, with_bias) {}

  /// Refuses an x whose last axes are not normalized_shape, and a negative eps.
  Tensor operator()(const Tensor& x) const {
    const NamedScope name = named_scope();
    return layer_norm(x, weight.shape(), weight, bias, eps_);
  }

  Parameter weight;
  Parameter bias;  // undefined without a bias

 private:
  Real eps_;
};

/// `rms_norm` over the last axis. Name and first value as PyTorch's RMSNorm: weight (width) of ones.
class RMSNorm : public Module {
 public:
  explicit RMSNorm(std::size_t width, Real eps = std::numeric_limits<Real>::epsilon())
      : weight(param("weight", ones({width}))), eps_(eps) {}

  /// Refuses an x whose last axis is not `width` wide, and a negative eps.
  Tensor operator()(const Tensor& x) const {
    const NamedScope name = named_scope();
    return rms_norm(x, weight, eps_);
  }

  Parameter weight;

 private:
  Real eps_;
};

}  // namespace TAPEGRAD::nn
