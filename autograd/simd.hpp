/// Loops over one row with xsimd batches: the only file that names xsimd.
///
/// The last elements, where they do not fill a batch, go through one that overlaps the batch before (or is padded), so
/// that they are computed exactly as the others are.
#pragma once

#include <xsimd/xsimd.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numbers>

#include "autograd/array.hpp"

namespace TAPEGRAD::simd {

using Batch = xsimd::batch<Real>;
constexpr std::size_t kWidth = Batch::size;

/// The batch that ends with x[n-1]: the last kWidth elements, or, of fewer, all behind some `padding`.
inline Batch load_end(const Real* x, std::size_t n, Real padding) {
  if (n >= kWidth) return Batch::load_unaligned(x + n - kWidth);
  alignas(64) Real part[kWidth];
  std::fill_n(part, kWidth - n, padding);
  std::copy_n(x, n, part + kWidth - n);
  return Batch::load_aligned(part);
}
inline void store_end(const Batch& batch, Real* to, std::size_t n) {
  if (n >= kWidth) return batch.store_unaligned(to + n - kWidth);
  alignas(64) Real part[kWidth];
  batch.store_aligned(part);
  std::copy_n(part + kWidth - n, n, to);
}

/// The last n lanes, zeros in the others.
inline Batch keep_last(const Batch& batch, std::size_t n) {
  alignas(64) static constexpr auto kLane = [] {
    std::array<Real, kWidth> lane{};
    for (std::size_t i = 0; i < kWidth; ++i) lane[i] = static_cast<Real>(kWidth - i);
    return lane;
  }();
  return xsimd::select(Batch::load_aligned(kLane.data()) <= Batch(static_cast<Real>(n)), batch, Batch(Real(0)));
}

/// The sum of a batch's lanes.
inline Real sum_lanes(const Batch& batch) {
#if XSIMD_VERSION_MAJOR < 10
  return xsimd::hadd(batch);
#else
  return xsimd::reduce_add(batch);
#endif
}

/// The largest of n elements; NaN if there is one, -inf of nothing.
inline Real max(const Real* x, std::size_t n) {
  constexpr Real kLowest = -std::numeric_limits<Real>::infinity();
  Batch top(kLowest);
  auto any_nan = xsimd::isnan(top);  // apart, since the processor's maximum loses a NaN
  const auto take = [&](const Batch& b) {
    top = xsimd::max(top, b);
    any_nan = any_nan || xsimd::isnan(b);
  };
  for (std::size_t i = 0; i + kWidth <= n; i += kWidth) take(Batch::load_unaligned(x + i));
  if (n % kWidth != 0) take(load_end(x, n, kLowest));
  if (xsimd::any(any_nan)) return std::numeric_limits<Real>::quiet_NaN();
  alignas(64) Real lanes[kWidth];
  top.store_aligned(lanes);
  Real even = lanes[0];
  Real odd = lanes[1];
  for (std::size_t i = 2; i < kWidth; i += 2) {
    even = lanes[i] > even ? lanes[i] : even;
    odd = lanes[i + 1] > odd ? lanes[i + 1] : odd;
  }
  return even > odd ? even : odd;
}

/// out = e^(x - shift); returns the sum of out. x and out may be the same.
inline Real exp_of_difference(const Real* x, Real shift, Real* out, std::size_t n) {
  const std::size_t rest = n % kWidth;
  const Batch end = rest ? xsimd::exp(load_end(x, n, shift) - shift) : Batch(Real(0));  // before x is overwritten
  Batch total = keep_last(end, rest);
  for (std::size_t i = 0; i + kWidth <= n; i += kWidth) {
    const Batch e = xsimd::exp(Batch::load_unaligned(x + i) - shift);
    e.store_unaligned(out + i);
    total += e;
  }
  if (rest) store_end(end, out, n);
  return sum_lanes(total);
}

/// The sum of e^(x - shift).
inline Real sum_exp_of_difference(const Real* x, Real shift, std::size_t n) {
  const std::size_t rest = n % kWidth;
  Batch total(Real(0));
  if (rest) total = keep_last(xsimd::exp(load_end(x, n, shift) - shift), rest);
  for (std::size_t i = 0; i + kWidth <= n; i += kWidth) total += xsimd::exp(Batch::load_unaligned(x + i) - shift);
  return sum_lanes(total);
}

/// to += factor e^(x - shift) + offset. Not for x and to that overlap.
inline void add_exp_of_difference(const Real* x, Real shift, Real factor, Real offset, Real* to, std::size_t n) {
  const auto sum = [=](const Batch& b, const Batch& old) {
    return old + xsimd::fma(Batch(factor), xsimd::exp(b - shift), Batch(offset));
  };
  const std::size_t rest = n % kWidth;
  const Batch end = rest ? sum(load_end(x, n, shift), load_end(to, n, 0)) : Batch(Real(0));  // before `to` is changed
  for (std::size_t i = 0; i + kWidth <= n; i += kWidth) {
    sum(Batch::load_unaligned(x + i), Batch::load_unaligned(to + i)).store_unaligned(to + i);
  }
  if (rest) store_end(end, to, n);
}

/// out = f(rows...), f from Batches to Batch. out overlaps no row.
template <class F, class... Rows>
void map(F f, Real* out, std::size_t n, const Rows*... rows) {
  for (std::size_t i = 0; i + kWidth <= n; i += kWidth) f(Batch::load_unaligned(rows + i)...).store_unaligned(out + i);
  if (n % kWidth != 0) store_end(f(load_end(rows, n, 0)...), out, n);
}

constexpr double kInvSqrtTwoPi = std::numbers::inv_sqrtpi / std::numbers::sqrt2;

/// The standard normal distribution function, and its density.
template <class X>
struct Normal {
  X cdf, pdf;
};

/// e^r for |r| <= ln(2)/2, to a relative error of 3e-9 before rounding.
inline Batch exp_near_zero(const Batch& r) {
  constexpr float kTerms[] = {0.499999933f, 0.166665191f, 0.0416684057f, 0.0083688987f, 0.00138142215f};
  Batch rest(kTerms[4]);
  for (int power = 3; power >= 0; --power) rest = xsimd::fma(rest, r, Batch(kTerms[power]));
  return Batch(1) + xsimd::fma(rest * r, r, r);
}

/// e^(-a^2/2) for float a in 0 ... 20; 0 below the least normal number.
inline Batch bell(const Batch& a) {
  // What rounding took from a^2 would be magnified by the exponential. Without a's last 12 bits, the square is exact:
  const Batch coarse = a & Batch(std::bit_cast<float>(0xfffff000));
  const Batch square = coarse * coarse;
  const Batch twos = xsimd::nearbyint(square * Batch(-0.72134752f));  // the power of 2 in it
  Batch rest = xsimd::fma(twos, Batch(-0.693359375f), square * Batch(-0.5f));
  rest = xsimd::fma(twos, Batch(2.12194440e-4f), rest);  // ln(2) in two parts, so that the product before is exact
  rest = xsimd::fma((a - coarse) * (a + coarse), Batch(-0.5f), rest);
  using Int = xsimd::as_integer_t<Batch>;
  return xsimd::ldexp(exp_near_zero(rest), xsimd::max(xsimd::to_int(twos), Int(-127)));
}

/// For float: with a = |x|, the upper tail 1 - cdf(a) is e^(-a^2/2) times a smooth function, here a ratio of
/// polynomials in a, fitted for a in 0 ... 14.5 to a relative error of 6e-9; all their terms are positive, so nothing
/// cancels.
inline Normal<Batch> normal(const Batch& x) {
  constexpr float kAbove[] = {0.5f, 0.438294017f, 0.183234398f, 0.0406329637f, 0.00411626654f};
  constexpr float kBelow[] = {1.0f, 1.67447301f, 1.20250017f, 0.469468667f, 0.101858183f, 0.0103178304f};
  const Batch a = xsimd::min(Batch(20), xsimd::abs(x));  // no infinity comes further; in this order, a NaN does
  Batch above(kAbove[4]);
  for (int power = 3; power >= 0; --power) above = xsimd::fma(above, a, Batch(kAbove[power]));
  Batch below(kBelow[5]);
  for (int power = 4; power >= 0; --power) below = xsimd::fma(below, a, Batch(kBelow[power]));
  const Batch density = bell(a);
  const Batch upper = above * density / below;
  return {xsimd::select(x < Batch(0), upper, Batch(1) - upper), density * Batch(static_cast<Real>(kInvSqrtTwoPi))};
}

/// The sum of f(x), f from Batch to Batch.
template <class F>
Real sum_of(const Real* x, std::size_t n, F f) {
  Batch even(Real(0));  // two sums, so that an addition need not wait for the one before
  Batch odd(Real(0));
  std::size_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    even += f(Batch::load_unaligned(x + i));
    odd += f(Batch::load_unaligned(x + i + kWidth));
  }
  if (i + kWidth <= n) even += f(Batch::load_unaligned(x + i));
  if (n % kWidth != 0) odd += keep_last(f(load_end(x, n, 0)), n % kWidth);
  return sum_lanes(even + odd);
}

/// The sum of a b.
inline Real dot(const Real* a, const Real* b, std::size_t n) {
  Batch total(Real(0));
  std::size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    total = xsimd::fma(Batch::load_unaligned(a + i), Batch::load_unaligned(b + i), total);
  }
  if (i < n) total += keep_last(load_end(a, n, 0) * load_end(b, n, 0), n - i);
  return sum_lanes(total);
}

/// x = x factor.
inline void scale(Real* x, Real factor, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace TAPEGRAD::simd
