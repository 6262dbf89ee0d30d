#include <cmath>

#include "autograd/kernels.hpp"
#include "autograd/kernels/parallel.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

/// f(row in, row out, n) on every run along the axis. Rows are contiguous when the axis is the last; another axis is
/// moved there first and back afterwards.
template <class F>
Array along_rows(const Array& x, std::size_t axis, F f) {
  Array result = empty_array(x.shape());
  if (x.size() == 0) return result;  // the axes before may be long nevertheless
  const AxisView view(x.shape(), axis);
  if (view.inner == 1) {
    parallel_ranges(view.outer, view.extent, [&, to = result.data()](std::size_t first, std::size_t last) {
      for (std::size_t o = first; o < last; ++o) f(x.data() + o * view.extent, to + o * view.extent, view.extent);
    });
    return result;
  }
  PoolVector<Real> row(view.extent);
  for (std::size_t o = 0; o < view.outer; ++o) {
    for (std::size_t i = 0; i < view.inner; ++i) {
      const std::size_t start = o * view.extent * view.inner + i;
      for (std::size_t k = 0; k < view.extent; ++k) row[k] = x.data()[start + k * view.inner];
      f(row.data(), row.data(), view.extent);
      for (std::size_t k = 0; k < view.extent; ++k) result.data()[start + k * view.inner] = row[k];
    }
  }
  return result;
}

}  // namespace

Array softmax_values(const Array& x, std::size_t axis) {
  return along_rows(x, axis, [](const Real* in, Real* out, std::size_t n) {
    const Real total = simd::exp_of_difference(in, simd::max(in, n), out, n);
    simd::scale(out, 1 / total, n);
  });
}

Array log_softmax_values(const Array& x, std::size_t axis) {
  return along_rows(x, axis, [](const Real* in, Real* out, std::size_t n) {
    const Real top = simd::max(in, n);
    const Real log_total = std::log(simd::sum_exp_of_difference(in, top, n));
    for (std::size_t i = 0; i < n; ++i) out[i] = (in[i] - top) - log_total;
  });
}

Array softmax_backward(const Array& dy, const Array& y, int axis) {
  Array dx = empty_array(y.shape());
  if (y.size() == 0) return dx;
  const AxisView view(y.shape(), static_cast<std::size_t>(axis));
  const std::size_t block = view.extent * view.inner;
  if (view.inner == 1) {
    parallel_ranges(view.outer, block, [&, to = dx.data()](std::size_t first, std::size_t last) {
      for (std::size_t at = first * block; at < last * block; at += block) {
        const Real* dy_row = dy.data() + at;
        const Real* y_row = y.data() + at;
        const Real dot = simd::dot(dy_row, y_row, block);
        for (std::size_t i = 0; i < block; ++i) to[at + i] = y_row[i] * (dy_row[i] - dot);
      }
    });
    return dx;
  }
  for (std::size_t o = 0; o < view.outer; ++o) {
    const Real* dy_row = dy.data() + o * block;
    const Real* y_row = y.data() + o * block;
    Real* dx_row = dx.data() + o * block;
    for (std::size_t i = 0; i < view.inner; ++i) {
      double dot = 0;
      for (std::size_t at = i; at < block; at += view.inner) dot += static_cast<double>(dy_row[at]) * y_row[at];
      for (std::size_t at = i; at < block; at += view.inner)
        dx_row[at] = y_row[at] * (dy_row[at] - static_cast<Real>(dot));
    }
  }
  return dx;
}

Array running_sum(const Array& x, int axis, bool reverse) {
  Array result = empty_array(x.shape());
  if (x.size() == 0) return result;
  const AxisView view(x.shape(), static_cast<std::size_t>(axis));
  PoolVector<double> sums(view.inner);
  for (std::size_t o = 0; o < view.outer; ++o) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t k = 0; k < view.extent; ++k) {
      const std::size_t row = (o * view.extent + (reverse ? view.extent - 1 - k : k)) * view.inner;
      for (std::size_t i = 0; i < view.inner; ++i) {
        sums[i] += x.data()[row + i];
        result.data()[row + i] = static_cast<Real>(sums[i]);
      }
    }
  }
  return result;
}

}  // namespace TAPEGRAD
