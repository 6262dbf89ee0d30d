#include "nn/positional_encoding.hpp"

#include <cmath>

#include "autograd/shapes.hpp"

namespace TAPEGRAD::nn {
namespace {

/// Radians per position of the pair j of columns.
double frequency(std::size_t j, std::size_t d) {
  return std::pow(10000.0, -2 * static_cast<double>(j) / static_cast<double>(d));
}

void require_even(double delta, std::size_t d, const char* who) {
  require(d >= 2 && d % 2 == 0, who, "the width must be even and at least 2", d);
  require(std::isfinite(delta), who, "the offset must be finite", delta);
}

void require_rows(const Tensor& x, std::size_t width, const char* who) {
  require(x.rank() >= 2 && x.extent(-1) == width, who, "x must be (...,positions,width)", x.shape(), width);
}

}  // namespace

Tensor sinusoids(std::size_t n, std::size_t d, std::int64_t offset) {
  require_size({n, d}, "sinusoids");
  Array table = empty_array({n, d});
  for (std::size_t column = 0; column < d; ++column) {
    const double radians = frequency(column / 2, d);
    for (std::size_t i = 0; i < n; ++i) {
      const double angle = (static_cast<double>(offset) + static_cast<double>(i)) * radians;
      table.data()[i * d + column] = static_cast<Real>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

Tensor rotation(double delta, std::size_t d) {
  require_even(delta, d, "rotation");
  require_size({d, d}, "rotation");
  Array turn(Shape{d, d}, Real(0));
  for (std::size_t i = 0; i < d; i += 2) {
    const double angle = delta * frequency(i / 2, d);
    Real* row = turn.data() + i * d + i;
    row[0] = row[d + 1] = static_cast<Real>(std::cos(angle));
    row[1] = static_cast<Real>(std::sin(angle));
    row[d] = -row[1];
  }
  return turn;
}

double offset_product(double delta, std::size_t d) {
  require_even(delta, d, "offset_product");
  double sum = 0;
  for (std::size_t j = 0; j < d / 2; ++j) sum += std::cos(delta * frequency(j, d));
  return sum;
}

PositionalEncoding::PositionalEncoding(std::size_t width) : width_(width) {
  require(width > 0, "PositionalEncoding", "the width must be at least 1", width);
}

PositionalEncoding::PositionalEncoding(std::size_t width, double p, Rng& rng) : PositionalEncoding(width) {
  dropout_ = std::make_unique<Dropout>(p, rng);
  child("dropout", *dropout_);
}

Tensor PositionalEncoding::operator()(const Tensor& x, std::int64_t offset) {
  const NamedScope name = named_scope();
  require_rows(x, width_, "PositionalEncoding");
  const std::size_t n = x.extent(-2);
  if (!table_.defined() || table_.extent(0) != n || table_offset_ != offset) {
    table_ = sinusoids(n, width_, offset);
    table_offset_ = offset;
  }
  const Tensor y = x + table_;
  return dropout_ ? (*dropout_)(y) : y;
}

LearnedPositionalEncoding::LearnedPositionalEncoding(std::size_t length, std::size_t width, Rng& rng) {
  require(length > 0 && width > 0, "LearnedPositionalEncoding", "length and width must be at least 1", length, width);
  weight = param("weight", rng.normal({length, width}, 0, 0.02));
}

Tensor LearnedPositionalEncoding::operator()(const Tensor& x, std::int64_t offset) {
  const NamedScope name = named_scope();
  require_rows(x, weight.extent(1), "LearnedPositionalEncoding");
  const std::size_t n = x.extent(-2);
  const std::size_t length = weight.extent(0);
  require(offset >= 0 && n <= length && static_cast<std::uint64_t>(offset) <= length - n, "LearnedPositionalEncoding",
          "the positions must be at least 0 and below the length", offset, n, length);
  return x + slice(weight, 0, offset, offset + static_cast<std::int64_t>(n));
}

}  // namespace TAPEGRAD::nn
