/// Random numbers from an object that is passed in: the same seed gives the same numbers on every machine.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "autograd/require.hpp"

namespace TAPEGRAD {

/// xoshiro256++ (Blackman and Vigna, 2021, "Scrambled linear pseudorandom number generators"), its state filled from
/// the seed by splitmix64. Numbers are drawn in double and rounded, so that float and double programs see the same
/// values.
class Rng {
 public:
  explicit Rng(std::uint64_t seed = 0) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }

  /// The next 64 random bits.
  std::uint64_t bits() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform on [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

  /// Standard normal, by the polar method (Marsaglia and Bray, 1964). The second number of each pair is dropped, so
  /// that the four words of state are the whole state.
  double normal() {
    for (;;) {
      const double u = 2 * uniform() - 1;
      const double v = 2 * uniform() - 1;
      const double square = std::fma(u, u, v * v);
      if (square > 0 && square < 1) return u * std::sqrt(-2 * std::log(square) / square);
    }
  }

  /// Uniform integer on [0, bound); bound must be positive.
  std::uint64_t below(std::uint64_t bound) {
    require(bound > 0, "Rng::below", "the bound must be positive", bound);
    const std::uint64_t limit = (0 - bound) % bound;  // 2^64 mod bound: drawing again below it leaves no bias
    for (;;) {
      const std::uint64_t drawn = bits();
      if (drawn >= limit) return drawn % bound;
    }
  }

  /// Array of that shape, uniform on [low, high).
  Array uniform(const Shape& shape, double low = 0, double high = 1) {
    require(low <= high, "Rng::uniform", "low must be at most high", low, high);
    require(std::isfinite(high - low), "Rng::uniform", "low, high and their difference must be finite", low, high);
    Array result = empty_array(shape);
    const Real below_high = std::nextafter(static_cast<Real>(high), static_cast<Real>(low));
    for (Real& element : result.storage()) {
      element =
          std::min(static_cast<Real>(std::fma(high - low, uniform(), low)), below_high);  // rounding may reach high
    }
    return result;
  }

  /// Array of that shape, normal with that mean and standard deviation.
  Array normal(const Shape& shape, double mean = 0, double deviation = 1) {
    require(deviation >= 0, "Rng::normal", "the deviation must not be negative", deviation);
    require(std::isfinite(mean) && std::isfinite(deviation), "Rng::normal", "mean and deviation must be finite", mean,
            deviation);
    Array result = empty_array(shape);
    for (Real& element : result.storage()) element = static_cast<Real>(std::fma(deviation, normal(), mean));
    return result;
  }

  /// The numbers 0 ... n-1 in random order (Fisher-Yates).
  std::vector<std::int64_t> permutation(std::size_t n) {
    std::vector<std::int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[below(i)]);
    return order;
  }

  /// The whole state: four words that a checkpoint can keep.
  const std::uint64_t (&state() const)[4] { return state_; }
  void set_state(const std::uint64_t (&state)[4]) {
    require(state[0] || state[1] || state[2] || state[3], "Rng::set_state", "some word of the state must not be zero");
    std::copy(state, state + 4, state_);
  }

 private:
  std::uint64_t state_[4];
};

}  // namespace TAPEGRAD
