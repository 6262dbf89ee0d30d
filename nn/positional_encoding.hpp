/// Where in a sequence a row is, told by numbers that are added to the row: attention alone would not know.
#pragma once

#include <memory>

#include "nn/dropout.hpp"

namespace TAPEGRAD::nn {

/// Sines and cosines of the positions offset ... offset+n-1 (Vaswani et al., 2017, section 3.5) -> (n,d):
/// PE(i,2j) = sin(i / 10000^(2j/d)), PE(i,2j+1) = cos(i / 10000^(2j/d)). An odd d ends with a sine. Computed in double,
/// then rounded; offset may be negative.
Tensor sinusoids(std::size_t n, std::size_t d, std::int64_t offset = 0);

/// The matrix (d,d) with PE(i + delta) = rotation(delta, d) PE(i) for every i, PE(i) being a column: it turns each pair
/// (2j,2j+1) by delta / 10000^(2j/d). So a linear layer can look at relative positions. Refuses an odd d, where the
/// last sine has no partner.
Tensor rotation(double delta, std::size_t d);

/// The dot product PE(i).PE(i + delta) = sum_j cos(delta / 10000^(2j/d)): the same for every i and for -delta, d/2 for
/// delta = 0. Refuses an odd d, where it depends on i too.
double offset_product(double delta, std::size_t d);

/// Adds the sinusoids to x; then, in training, drops elements if asked to. No parameters and no longest sequence.
class PositionalEncoding : public Module {
 public:
  explicit PositionalEncoding(std::size_t width);
  /// With Dropout(p, rng) of the sum.
  PositionalEncoding(std::size_t width, double p, Rng& rng);

  /// x (...,n,width), its first row at position `offset` -> x + sinusoids(n, width, offset).
  Tensor operator()(const Tensor& x, std::int64_t offset = 0);

 private:
  std::size_t width_;
  std::unique_ptr<Dropout> dropout_;  // null where nothing is dropped
  Tensor table_;                      // of the last call: in training it is the same each time
  std::int64_t table_offset_ = 0;
};

/// Adds a learned row for each position below `length`.
class LearnedPositionalEncoding : public Module {
 public:
  /// The rows start normal with deviation 0.02. Refuses an extent of 0.
  LearnedPositionalEncoding(std::size_t length, std::size_t width, Rng& rng);

  /// x (...,n,width), its first row at position `offset`. Refuses positions from `length` on, and below 0.
  Tensor operator()(const Tensor& x, std::int64_t offset = 0);

  Parameter weight;  ///< (length,width)
};

}  // namespace TAPEGRAD::nn
