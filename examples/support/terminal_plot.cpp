#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "examples/support/plot.hpp"
#include "examples/support/plot_parts.hpp"
#include "nn/utf8.hpp"

namespace examples {
namespace {

constexpr std::array ascii_symbols = {"*", "+", "o", "x", "#", "@"};
constexpr std::array symbols = {"●", "■", "○", "▲", "□", "▼"};

// Which of a braille cell's dots belong to a line: all of it, then dashed and dotted.
constexpr std::array line_dots = {"⠤⠤⠤⠤", "⠤⠤ ⠤", "⠄⠄⠄⠄", "⠤⠄⠤⠄", "⠤⠤⠤ ", "⠄ ⠄ "};
constexpr std::array<const char*, 6> dash_patterns = {"11111111", "11111000", "10101010",
                                                      "11110100", "11111100", "10001000"};

// A range's ends, as numbers that tell them apart; a log axis has no resolution.
std::vector<std::string> ends(Range range, bool log) {
  if (!log) return labels_of({range.low, range.high}, 4);
  return {labels_of({range.low}, 4)[0], labels_of({range.high}, 4)[0]};
}

// Text cells; in a cell either a symbol, or 2 x 4 braille dots.
class Canvas {
 public:
  Canvas(std::size_t width, std::size_t height, bool utf8)
      : width_(width), height_(height), utf8_(utf8), dots_(width * height), symbols_(width * height) {}

  double dot_columns() const { return static_cast<double>(width_ * 2); }
  double dot_rows() const { return static_cast<double>(height_ * 4); }

  // Dot (x, y), y downwards: a symbol in its cell, or the dot itself when there is no symbol.
  void put(double x, double y, const std::string& symbol) {
    const auto column = static_cast<std::size_t>(std::clamp(x, 0.0, dot_columns() - 1));
    const auto row = static_cast<std::size_t>(std::clamp(y, 0.0, dot_rows() - 1));
    const std::size_t cell = row / 4 * width_ + column / 2;
    constexpr unsigned bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (!symbol.empty()) {
      symbols_[cell] = symbol;
    } else {
      dots_[cell] |= bits[row % 4][column % 2];
    }
  }

  std::string row(std::size_t r) const {
    std::string out;
    for (std::size_t c = r * width_; c < (r + 1) * width_; ++c) {
      out += !symbols_[c].empty()     ? symbols_[c]
             : utf8_ && dots_[c] != 0 ? tapegrad::utf8::encoded(0x2800U + dots_[c])
                                      : " ";
    }
    return out.substr(0, out.find_last_not_of(' ') + 1);
  }

 private:
  std::size_t width_, height_;
  bool utf8_;
  std::vector<unsigned> dots_;
  std::vector<std::string> symbols_;
};

}  // namespace

bool utf8_terminal() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale = value;
    for (char& c : locale) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

std::string terminal_plot(const Panel& panel, std::size_t width, std::size_t height, bool utf8) {
  const Range x = data_range({panel}, true), y = data_range({panel}, false);
  const std::string bottom = ends(y, panel.log_y)[0], top = ends(y, panel.log_y)[1];
  const std::string left = ends(x, panel.log_x)[0], right = ends(x, panel.log_x)[1];
  const std::size_t margin = std::max(top.size(), bottom.size());
  width = std::max<std::size_t>(width, margin + 32);
  height = std::max<std::size_t>(height, 3);
  Canvas canvas(width - margin - 2, height, utf8);

  // Without the log of a value that has none: NaN stays NaN and is left out.
  const auto part = [](double value, Range r, bool log) {
    if (log) return std::log(value / r.low) / std::log(r.high / r.low);
    return (value / 2 - r.low / 2) / (r.high / 2 - r.low / 2);
  };
  std::string key;
  std::size_t key_width = 0;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const Series& s = panel.series[i];
    const std::size_t style = (s.style >= 0 ? static_cast<std::size_t>(s.style) : i) % symbols.size();
    const bool braille = utf8 && s.mark == Mark::line;
    const std::string symbol = braille ? "" : utf8 ? symbols[style] : ascii_symbols[style];
    double last_x = NAN, last_y = NAN;
    std::size_t drawn = 0;
    for (std::size_t k = 0; k < s.x.size(); ++k) {
      const double at_x = part(s.x[k], x, panel.log_x) * (canvas.dot_columns() - 1);
      const double at_y = (1 - part(s.y[k], y, panel.log_y)) * (canvas.dot_rows() - 1);
      const bool finite = std::isfinite(at_x) && std::isfinite(at_y);
      if (finite && s.mark != Mark::line) canvas.put(std::round(at_x), std::round(at_y), symbol);
      if (finite && s.mark != Mark::points && std::isfinite(last_x)) {
        const int steps =
            std::max(1, static_cast<int>(std::ceil(std::max(std::abs(at_x - last_x), std::abs(at_y - last_y)))));
        for (int step = 0; step <= steps; ++step, ++drawn) {
          if (braille && dash_patterns[style][drawn % 8] == '0') continue;
          const double t = static_cast<double>(step) / steps;
          canvas.put(std::round(last_x + t * (at_x - last_x)), std::round(last_y + t * (at_y - last_y)),
                     utf8 ? "" : symbol);
        }
      }
      last_x = finite ? at_x : NAN;
      last_y = finite ? at_y : NAN;
    }
    if (s.label.empty()) continue;
    const std::string entry = (braille ? line_dots[style] : symbol) + " " + printable(s.label, width / 2);
    const bool wraps = key_width > 0 && key_width + 3 + characters(entry) > width - margin - 2;
    if (wraps) key_width = 0;
    if (wraps) key += '\n';
    key += std::string(wraps ? margin + 2 : key_width > 0 ? 3 : 0, ' ') + entry;
    key_width += characters(entry) + (key_width > 0 ? 3 : 0);
  }

  const std::string indent(margin + 2, ' ');
  std::string out;
  if (!panel.title.empty()) out += indent + printable(panel.title, width - margin - 5) + "\n";
  if (!panel.ylabel.empty()) out += indent + printable(panel.ylabel, width - margin - 5) + "\n";
  for (std::size_t r = 0; r < height; ++r) {
    const std::string label = r == 0 ? top : r + 1 == height ? bottom : "";
    out += std::string(margin - label.size(), ' ') + label + (utf8 ? " │" : " |") + canvas.row(r) + "\n";
  }
  out += std::string(margin + 1, ' ') + (utf8 ? "└" : "+");
  for (std::size_t c = margin + 2; c < width; ++c) out += utf8 ? "─" : "-";
  const std::size_t room = width - margin - 2 - left.size() - right.size();
  const std::string middle = printable(panel.xlabel, room > 6 ? room - 6 : 0);
  const std::size_t before = (room - characters(middle)) / 2;
  out += "\n" + indent + left + std::string(before, ' ') + middle +
         std::string(room - before - characters(middle), ' ') + right + "\n";
  return key.empty() ? out : out + indent + key + "\n";
}

}  // namespace examples
