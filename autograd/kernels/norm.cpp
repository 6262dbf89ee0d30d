#include <cmath>

#include "autograd/kernels.hpp"
#include "autograd/kernels/parallel.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

using simd::Batch;

// Rows that one thread takes at a time. Gradients of weight and bias are summed over a block in Real, then in double
// over the blocks: right to the last bits at any number of rows, and the same for any number of threads.
constexpr std::size_t kBlock = 64;

/// f(row) for every row, block by block.
template <class F>
void for_each_row(std::size_t rows, std::size_t n, F f) {
  parallel_for((rows + kBlock - 1) / kBlock, rows * n >= kParallel, [&](std::size_t block) {
    const std::size_t end = std::min(rows, (block + 1) * kBlock);
    for (std::size_t row = block * kBlock; row < end; ++row) f(row);
  });
}

/// Adds the sums of the blocks to `to`.
void add_blocks(const PoolVector<Real>& sums, Array& to) {
  PoolVector<double> total(to.size());
  for (std::size_t from = 0; from < sums.size(); from += total.size()) {
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += sums[from + i];
  }
  for (std::size_t i = 0; i < total.size(); ++i) to.data()[i] += static_cast<Real>(total[i]);
}

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
  const double square = mean_square(x, s.mean, s.rest, n) + options.eps;
  s.factor = square == 0 ? Real(0) : static_cast<Real>(1 / std::sqrt(square));  // all equal: y and its gradient are 0
  return s;
}

Statistics load(const Real* row) { return {row[0], row[1], row[2]}; }

/// The sums of g and of g y over a row, g = dy weight and y the normalised x.
struct Sums {
  Real g, gy;
};

/// dx = factor (g - mean(g) - y mean(g y)), or is increased by it; the first mean for a centred row only.
void put_dx(const Real* dy, const Real* x, const Real* weight, const Statistics& s, const Sums& mean, Real* dx,
            bool add, std::size_t n) {
  const auto value = [&](std::size_t i) { return s.factor * (dy[i] * weight[i] - mean.g - s(x[i]) * mean.gy); };
  if (add) {
    for (std::size_t i = 0; i < n; ++i) dx[i] += value(i);
  } else {
    for (std::size_t i = 0; i < n; ++i) dx[i] = value(i);
  }
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
  const std::size_t n = weight.size();
  const Real* w = weight.data();
  const Real* b = bias ? bias->data() : nullptr;
  Array result = empty_array(x.shape());
  statistics = empty_array(Shape{row_count(x.shape(), weight.shape()), 3});
  for_each_row(statistics.shape()[0], n, [&, to = result.data(), kept = statistics.data()](std::size_t row) {
    const Real* x_row = x.data() + row * n;
    Real* y_row = to + row * n;
    const Statistics s = statistics_of(x_row, n, options);
    kept[row * 3] = s.mean;
    kept[row * 3 + 1] = s.rest;
    kept[row * 3 + 2] = s.factor;
    if (b != nullptr) {
      for (std::size_t i = 0; i < n; ++i) y_row[i] = s(x_row[i]) * w[i] + b[i];
    } else {
      for (std::size_t i = 0; i < n; ++i) y_row[i] = s(x_row[i]) * w[i];
    }
  });
  return result;
}

void norm_backward(const Array& dy, const Array& x, const Array& weight, const Array& statistics, bool centred,
                   Array* dx, bool add_to_dx, Array* dweight, Array* dbias) {
  const std::size_t rows = statistics.shape()[0];
  const std::size_t n = weight.size();
  const std::size_t blocks = (rows + kBlock - 1) / kBlock;
  const auto count = static_cast<Real>(n);
  PoolVector<Real> weight_sums(dweight ? blocks * n : 0);
  PoolVector<Real> bias_sums(dbias ? blocks * n : 0);
  for_each_row(rows, n, [&](std::size_t row) {
    const Real* dy_row = dy.data() + row * n;
    const Real* x_row = x.data() + row * n;
    const Statistics s = load(statistics.data() + row * 3);
    if (dx != nullptr) {
      const Sums sums = sums_of(dy_row, x_row, weight.data(), s, n);
      const Sums mean{centred ? sums.g / count : Real(0), sums.gy / count};
      put_dx(dy_row, x_row, weight.data(), s, mean, dx->data() + row * n, add_to_dx, n);
    }
    if (dweight != nullptr) {
      Real* sum = weight_sums.data() + row / kBlock * n;
      for (std::size_t i = 0; i < n; ++i) sum[i] += dy_row[i] * s(x_row[i]);
    }
    if (dbias != nullptr) {
      Real* sum = bias_sums.data() + row / kBlock * n;
      for (std::size_t i = 0; i < n; ++i) sum[i] += dy_row[i];
    }
  });
  if (dweight != nullptr) add_blocks(weight_sums, *dweight);
  if (dbias != nullptr) add_blocks(bias_sums, *dbias);
}

}  // namespace TAPEGRAD
