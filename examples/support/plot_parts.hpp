// What gnuplot's pictures and the terminal's share: ranges, and text that is safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "examples/support/plot.hpp"

namespace examples {

struct Range {
  double low, high;
};

/// The range of all panels' finite data along x or y (positive ones only on a log axis), guides included, never empty.
/// Throws std::invalid_argument when there is none, or a series' x and y differ in length.
Range data_range(const std::vector<Panel>& panels, bool along_x);

/// The values with as many decimals as tell apart a range's `digits`-th digit, none of them superfluous: "7.0", "7.5".
/// Where that would be longer than 12 characters, six digits of each instead.
std::vector<std::string> labels_of(const std::vector<double>& values, int digits);

/// `text` in valid UTF-8 without control characters, at most `longest` characters ("..." marks a cut).
std::string printable(const std::string& text, std::size_t longest);

/// How many characters valid UTF-8 has.
std::size_t characters(const std::string& text);

}  // namespace examples
