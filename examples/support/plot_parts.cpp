#include "examples/support/plot_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "nn/utf8.hpp"

namespace examples {
Range data_range(const std::vector<Panel>& panels, bool along_x) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  Range range{infinite, -infinite};
  bool log = false;
  for (const Panel& panel : panels) {
    log = along_x ? panel.log_x : panel.log_y;
    const auto include = [&](double value) {
      if (!std::isfinite(value) || (log && value <= 0)) return;
      range = {std::min(range.low, value), std::max(range.high, value)};
    };
    for (const Series& s : panel.series) {
      if (s.x.size() != s.y.size()) {
        throw std::invalid_argument("[plot] x and y of series '" + s.label + "' must be equally long; got " +
                                    std::to_string(s.x.size()) + " and " + std::to_string(s.y.size()));
      }
      for (const double value : along_x ? s.x : s.y) include(value);
    }
    for (const Guide& g : panel.guides) {
      if (g.vertical == along_x) include(g.at);
    }
  }
  if (range.low > range.high) {
    const std::string title = panels.empty() ? "" : panels[0].title;
    throw std::invalid_argument("[plot] nothing to draw in '" + title + "': no finite number" +
                                (log ? " above 0" : ""));
  }
  if (range.low < range.high) return range;
  if (log) return {range.low / 2, range.high * 2};
  const double half = range.low == 0 ? 1 : std::abs(range.low) / 2;
  return {range.low - half, range.high + half};
}

std::vector<std::string> labels_of(const std::vector<double>& values, int digits) {
  const auto written = [&](const char* format, int precision) {
    std::vector<std::string> labels;
    for (const double value : values) {
      char label[400];
      std::snprintf(label, sizeof label, format, precision, value);
      labels.emplace_back(label);
      if (labels.back().find_first_of("123456789n") == std::string::npos && label[0] == '-') labels.back().erase(0, 1);
    }
    return labels;
  };
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double range = *high > *low ? *high - *low : std::abs(*low);
  const double leading = range > 0 && std::isfinite(range) ? std::floor(std::log10(range)) : 0;
  int decimals = static_cast<int>(std::clamp(digits - 1 - leading, 0.0, 20.0));
  std::vector<std::string> labels = written("%.*f", decimals);
  const auto ends_in_zero = [](const std::string& label) { return label.back() == '0'; };
  while (decimals > 0 && std::all_of(labels.begin(), labels.end(), ends_in_zero)) {
    labels = written("%.*f", --decimals);
  }
  const auto is_long = [](const std::string& label) { return label.size() > 12; };
  return std::any_of(labels.begin(), labels.end(), is_long) ? written("%.*g", 6) : labels;
}

std::string printable(const std::string& text, std::size_t longest) {
  std::string out;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (count++ == longest) return out + "...";
    const auto [code, length] = tapegrad::utf8::first(std::string_view(text).substr(at));
    out += length == 0 ? "?" : tapegrad::utf8::is_control(code) ? " " : text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0U) != 0x80; }));
}

}  // namespace examples
