#include <cmath>

#include "autograd/kernels.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

using simd::Batch;

// Gradients of weight and bias are summed over this many rows in Real, then in double over the blocks: right to the
// last bits at any number of rows.
constexpr std::size_t kBlock = 64;

std::size_t row_count(const Shape& shape, const Shape& normalized) {
  std::size_t rows = 1;
  for (std::size_t i = 0; i + normalized.size() < shape.size(); ++i) rows *= shape[i];
  return rows;
}

/// What a row is normalised with: y = ((x - mean) - rest) factor. The mean is kept as two numbers, since one could be
/// off by a good part of a deviation where the mean is large.
struct Statistics {
  Real mean, rest, factor;
  Real operator()(Real x) const { return ((x - mean) - rest) * factor; }
  Batch operator()(const Batch& x) const { return ((x - mean) - rest) * factor; }
};

/// The mean of (x - mean - rest)^2; in double where the squares are too large for Real.
double mean_square(const Real* x, Real mean, Real rest, std::size_t n) {
  double total = simd::sum_of(x, n, [=](const Batch& b) {
    const Batch centred = (b - mean) - rest;
    return centred * centred;
  });
  if (!std::isfinite(total)) {
    total = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double centred = (static_cast<double>(x[i]) - mean) - rest;
      total += centred * centred;
    }
  }
  return total / static_cast<double>(n);
}

Statistics statistics_of(const Real* x, std::size_t n, const NormOptions& options) {
  Statistics s{0, 0, 0};
  const auto count = static_cast<Real>(n);
  if (options.centred) {
    s.mean = simd::sum_of(x, n, [](const Batch& b) { return b; }) / count;
    s.rest = simd::sum_of(x, n, [=](const Batch& b) { return b - s.mean; }) / count;
  }
  s.factor = static_cast<Real>(1 / std::sqrt(mean_square(x, s.mean, s.rest, n) + options.eps));
  return s;
}

Statistics load(const Real* row) { return {row[0], row[1], row[2]}; }

/// The sums of g and of g y over a row, g = dy weight and y the normalised x.
struct Sums {
  Real g, gy;
};

/// dx += factor (g - mean(g) - y mean(g y)), the first mean for a centred row only.
void add_dx(const Real* dy, const Real* x, const Real* weight, const Statistics& s, const Sums& mean, Real* dx,
            std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dx[i] += s.factor * (dy[i] * weight[i] - mean.g - s(x[i]) * mean.gy);
}

Sums sums_of(const Real* dy, const Real* x, const Real* weight, const Statistics& s, std::size_t n) {
  Batch g_total(Real(0));
  Batch gy_total(Real(0));
  std::size_t i = 0;
  for (; i + simd::kWidth <= n; i += simd::kWidth) {
    const Batch g = Batch::load_unaligned(dy + i) * Batch::load_unaligned(weight + i);
    g_total += g;
    gy_total += g * s(Batch::load_unaligned(x + i));
  }
  Sums sums{simd::sum_lanes(g_total), simd::sum_lanes(gy_total)};
  for (; i < n; ++i) {
    const Real g = dy[i] * weight[i];
    sums.g += g;
    sums.gy += g * s(x[i]);
  }
  return sums;
}

}  // namespace

Array norm_values(const Array& x, const Array& weight, const Array* bias, const NormOptions& options,
                  Array& statistics) {
  const std::size_t rows = row_count(x.shape(), weight.shape());
  const std::size_t n = weight.size();
  const Real* w = weight.data();
  const Real* b = bias ? bias->data() : nullptr;
  Array result = empty_array(x.shape());
  statistics = empty_array(Shape{rows, 3});
  for (std::size_t row = 0; row < rows; ++row) {
    const Real* from = x.data() + row * n;
    Real* to = result.data() + row * n;
    const Statistics s = statistics_of(from, n, options);
    const Real kept[3] = {s.mean, s.rest, s.factor};
    std::copy_n(kept, 3, statistics.data() + row * 3);
    if (b != nullptr) {
      for (std::size_t i = 0; i < n; ++i) to[i] = s(from[i]) * w[i] + b[i];
    } else {
      for (std::size_t i = 0; i < n; ++i) to[i] = s(from[i]) * w[i];
    }
  }
  return result;
}

void norm_backward(const Array& dy, const Array& x, const Array& weight, const Array& statistics, bool centred,
                   Array* dx, Array* dweight, Array* dbias) {
  const std::size_t rows = row_count(x.shape(), weight.shape());
  const std::size_t n = weight.size();
  const auto count = static_cast<Real>(n);
  PoolVector<Real> block_weight(dweight ? n : 0);
  PoolVector<Real> block_bias(dbias ? n : 0);
  PoolVector<double> total_weight(block_weight.size());
  PoolVector<double> total_bias(block_bias.size());
  const auto flush = [](PoolVector<Real>& block, PoolVector<double>& total) {
    for (std::size_t i = 0; i < block.size(); ++i) total[i] += block[i];
    std::fill(block.begin(), block.end(), Real(0));
  };
  for (std::size_t row = 0; row < rows; ++row) {
    const Real* dy_row = dy.data() + row * n;
    const Real* x_row = x.data() + row * n;
    const Statistics s = load(statistics.data() + row * 3);
    if (dx != nullptr) {
      const Sums sums = sums_of(dy_row, x_row, weight.data(), s, n);
      const Sums mean{centred ? sums.g / count : Real(0), sums.gy / count};
      add_dx(dy_row, x_row, weight.data(), s, mean, dx->data() + row * n, n);
    }
    for (std::size_t i = 0; i < block_weight.size(); ++i) block_weight[i] += dy_row[i] * s(x_row[i]);
    for (std::size_t i = 0; i < block_bias.size(); ++i) block_bias[i] += dy_row[i];
    if ((row + 1) % kBlock == 0 || row + 1 == rows) {
      flush(block_weight, total_weight);
      flush(block_bias, total_bias);
    }
  }
  for (std::size_t i = 0; i < total_weight.size(); ++i) dweight->data()[i] += static_cast<Real>(total_weight[i]);
  for (std::size_t i = 0; i < total_bias.size(); ++i) dbias->data()[i] += static_cast<Real>(total_bias[i]);
}

}  // namespace TAPEGRAD
