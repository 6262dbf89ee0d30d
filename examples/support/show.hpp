// What programs say: formatted lines, checked claims, pictures.
#pragma once

#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>

#include "examples/support/plot.hpp"

namespace examples {

/// printf into a string of at most 399 characters.
std::string text(const char* format, auto... values) {
  if constexpr (sizeof...(values) == 0) return format;
  char line[400];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

inline void show(const std::string& line) { std::cout << line << '\n'; }

/// What the program says must be so: `run` exits 1 when this throws.
inline void expect(bool so, const std::string& claim) {
  if (!so) throw std::runtime_error("it is not so that " + claim);
}

/// Saves a Figure or HeatMaps and names the files.
void draw(const auto& figure, const std::string& path) {
  for (const std::string& file : save(figure, path)) show("  " + file);
}

/// A Tensor of two axes as a heat map.
HeatMap heat_map(const std::string& title, const std::string& xlabel, const std::string& ylabel, const auto& matrix) {
  const auto* numbers = matrix.value().data();
  return {title, xlabel, ylabel, matrix.extent(0), matrix.extent(1), {numbers, numbers + matrix.size()}, {}, {}};
}

/// A Tensor's numbers, in row-major order.
inline std::vector<double> to_numbers(const auto& tensor) {
  return {tensor.value().data(), tensor.value().data() + tensor.size()};
}

/// The largest difference of two Tensors that broadcast.
inline double largest_difference(const auto& a, const auto& b) { return amax(abs(a - b)).item(); }

}  // namespace examples
