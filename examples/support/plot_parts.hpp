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

/// `text` in valid UTF-8 without control characters, at most `longest` characters ("..." marks a cut).
std::string printable(const std::string& text, std::size_t longest);

/// How many characters valid UTF-8 has.
std::size_t characters(const std::string& text);

}  // namespace examples
