/// Nadaraya-Watson kernel regression: a prediction is the average of the known values, weighted by how near their keys
/// are to the query (Nadaraya, 1964; Watson, 1964; "attention pooling" in Dive into Deep Learning).
#pragma once

#include "autograd/random.hpp"
#include "nn/module.hpp"

namespace TAPEGRAD::nn {

/// Attention pooling with learned widths: softmax(-((query - key) w)^2 / 2) over the keys, times the values.
class NadarayaWatson : public Module {
 public:
  /// `weights` is the number of keys for one weight per key position, or 1 for one width that all keys share. They
  /// start uniform on [0,1). Refuses 0 weights.
  NadarayaWatson(std::size_t weights, Rng& rng);

  /// queries (n), keys and values (n,m), m the number of weights, or any if that is 1 -> predictions (n).
  /// Refuses other shapes, and m = 0.
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values);

  /// The attention weights (n,m) of the last call, without a gradient; each row sums to 1. Refused before the first.
  Tensor attention_weights() const;

  Parameter w;

 private:
  Tensor attention_;
};

/// For x (n): the array (n,n-1) whose row i is x without x[i]. Made of x and of y, these are the keys and values to
/// train with, so that no point predicts itself. Refuses fewer than 2 points.
Tensor leave_one_out(const Tensor& x);

/// How the weight of a key falls with u = |query - key| / width, before the weights of a query are scaled to sum to 1.
enum class Kernel {
  gaussian,      ///< e^(-u^2 / 2)
  boxcar,        ///< 1 where u < 1, else 0
  epanechnikov,  ///< max(0, 1 - u), as Dive into Deep Learning has it; Epanechnikov's own is 1 - u^2
  constant,      ///< 1: average pooling
};

/// queries (n) and keys (m) -> attention weights (n,m), without a gradient; `matmul(weights, values)` are the
/// predictions. Each row sums to 1, but a row is all zeros where no key is within the width of a boxcar or an
/// epanechnikov. Refuses a width that is not positive and finite, or whose inverse is not finite.
Tensor kernel_attention(const Tensor& queries, const Tensor& keys, Kernel kernel, double width = 1);

}  // namespace TAPEGRAD::nn
