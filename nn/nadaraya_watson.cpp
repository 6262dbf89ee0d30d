#include "nn/nadaraya_watson.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace TAPEGRAD::nn {

NadarayaWatson::NadarayaWatson(std::size_t weights, Rng& rng) : w(param("w", rng.uniform({weights}))) {
  require(weights > 0, "NadarayaWatson", "there must be at least one weight", weights);
}

Tensor NadarayaWatson::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values) {
  const NamedScope name = named_scope();
  require(queries.rank() == 1 && keys.rank() == 2 && keys.extent(0) == queries.extent(0), "NadarayaWatson",
          "queries must be (n) and keys (n,m)", queries.shape(), keys.shape());
  require(values.shape() == keys.shape(), "NadarayaWatson", "values must have the keys' shape", values.shape(),
          keys.shape());
  const std::size_t n = keys.extent(0);
  const std::size_t m = keys.extent(1);
  require(m > 0 && (w.size() == 1 || w.size() == m), "NadarayaWatson",
          "there must be one weight, or as many as keys for each query", w.shape(), keys.shape());
  const Tensor expanded = repeat_interleave(unsqueeze(queries, 1), m, 1);  // (n,m)
  attention_ = softmax(square((expanded - keys) * w) * Real(-0.5), 1);
  return reshape(bmm(unsqueeze(attention_, 1), unsqueeze(values, 2)), Shape{n});
}

Tensor NadarayaWatson::attention_weights() const {
  require(attention_.defined(), "attention_weights", "there are no weights yet: call the module first");
  return attention_.detach();
}

Tensor leave_one_out(const Tensor& x) {
  require(x.rank() == 1 && x.size() >= 2, "leave_one_out", "x must be (n) with n at least 2", x.shape());
  const std::size_t n = x.size();
  Array others = empty_array({n, n - 1});
  Real* to = others.data();
  const Real* from = x.value().data();
  for (std::size_t i = 0; i < n; ++i) {
    to = std::copy(from, from + i, to);
    to = std::copy(from + i + 1, from + n, to);
  }
  return others;
}

namespace {

/// The gaussian's weight as a share of the nearest key's: all weights may be 0 for a query that is far from every key.
double gaussian_share(double distance, double nearest, double width) {
  const double beyond = distance - nearest;
  return beyond == 0 ? 1 : std::exp(-0.5 * (beyond / width) * ((distance + nearest) / width));
}

}  // namespace

Tensor kernel_attention(const Tensor& queries, const Tensor& keys, Kernel kernel, double width) {
  require(queries.rank() == 1 && keys.rank() == 1 && keys.size() > 0, "kernel_attention",
          "queries must be (n) and keys (m) with m at least 1", queries.shape(), keys.shape());
  require(width > 0 && std::isfinite(width) && std::isfinite(1 / width), "kernel_attention",
          "the width must be positive and finite, and so must its inverse", width);
  const std::size_t m = keys.size();
  Array weights = empty_array({queries.size(), m});
  PoolVector<double> distances(m), shares(m);
  Real* row = weights.data();
  for (Real query : queries.value().storage()) {
    double nearest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < m; ++i) {
      distances[i] = std::abs(static_cast<double>(query) - keys.value().data()[i]);
      nearest = std::min(nearest, distances[i]);
    }
    double total = 0;
    for (std::size_t i = 0; i < m; ++i) {
      const double u = distances[i] / width;
      // Comparisons are written so that NaN stays NaN.
      if (kernel == Kernel::gaussian) shares[i] = gaussian_share(distances[i], nearest, width);
      if (kernel == Kernel::boxcar) shares[i] = u < 1 ? 1 : u >= 1 ? 0 : u;
      if (kernel == Kernel::epanechnikov) shares[i] = u >= 1 ? 0 : 1 - u;
      if (kernel == Kernel::constant) shares[i] = 1;
      total += shares[i];
    }
    for (std::size_t i = 0; i < m; ++i) row[i] = static_cast<Real>(total == 0 ? 0 : shares[i] / total);
    row += m;
  }
  return weights;
}

}  // namespace TAPEGRAD::nn
