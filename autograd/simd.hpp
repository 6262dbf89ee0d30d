/// Loops over one row with xsimd batches: the only file that names xsimd.
///
/// The last elements, fewer than a batch, go through a padded batch of their own, so that they are computed exactly as
/// the others are.
#pragma once

#include <xsimd/xsimd.hpp>

#include <cmath>
#include <limits>

#include "autograd/array.hpp"

namespace TAPEGRAD::simd {

using Batch = xsimd::batch<Real>;
constexpr std::size_t kWidth = Batch::size;

/// The first n < kWidth elements at x, and `padding` after them.
inline Batch load_part(const Real* x, std::size_t n, Real padding) {
  alignas(64) Real part[kWidth];
  std::fill_n(part, kWidth, padding);
  std::copy_n(x, n, part);
  return Batch::load_aligned(part);
}
inline void store_part(const Batch& batch, Real* to, std::size_t n) {
  alignas(64) Real part[kWidth];
  batch.store_aligned(part);
  std::copy_n(part, n, to);
}

/// The sum of a batch's lanes; its name in xsimd depends on the version.
inline Real sum_lanes(const Batch& batch) {
  alignas(64) Real lanes[kWidth];
  batch.store_aligned(lanes);
  for (std::size_t half = kWidth / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

/// The largest of n elements; NaN if there is one, -inf of nothing.
inline Real max(const Real* x, std::size_t n) {
  constexpr Real kLowest = -std::numeric_limits<Real>::infinity();
  Batch top(kLowest);
  const auto take = [&](const Batch& b) { top = xsimd::select((b > top) || (b != b), b, top); };
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) take(Batch::load_unaligned(x + i));
  if (i < n) take(load_part(x + i, n - i, kLowest));
  alignas(64) Real lanes[kWidth];
  top.store_aligned(lanes);
  Real result = lanes[0];
  for (Real lane : lanes) result = lane > result || lane != lane ? lane : result;
  return result;
}

/// out = e^(x - shift); returns the sum of out. x and out may be the same.
inline Real exp_of_difference(const Real* x, Real shift, Real* out, std::size_t n) {
  Batch total(Real(0));
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Batch e = xsimd::exp(Batch::load_unaligned(x + i) - shift);
    e.store_unaligned(out + i);
    total += e;
  }
  Real rest = 0;
  if (i < n) {
    store_part(xsimd::exp(load_part(x + i, n - i, shift) - shift), out + i, n - i);
    for (; i < n; ++i) rest += out[i];
  }
  return sum_lanes(total) + rest;
}

/// The sum of e^(x - shift).
inline Real sum_exp_of_difference(const Real* x, Real shift, std::size_t n) {
  Batch total(Real(0));
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) total += xsimd::exp(Batch::load_unaligned(x + i) - shift);
  if (i < n) total += xsimd::exp(load_part(x + i, n - i, -std::numeric_limits<Real>::infinity()) - shift);
  return sum_lanes(total);
}

/// The sum of a b.
inline Real dot(const Real* a, const Real* b, std::size_t n) {
  Batch total(Real(0));
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    total = xsimd::fma(Batch::load_unaligned(a + i), Batch::load_unaligned(b + i), total);
  }
  Real rest = 0;
  for (; i < n; ++i) rest += a[i] * b[i];
  return sum_lanes(total) + rest;
}

/// x = x factor.
inline void scale(Real* x, Real factor, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace TAPEGRAD::simd
