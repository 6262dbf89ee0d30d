#include "examples/support/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <mutex>
#include <sstream>

#include "examples/support/csv.hpp"
#include "examples/support/files.hpp"
#include "examples/support/plot_parts.hpp"
#include "examples/support/tool.hpp"

namespace examples {
namespace {

// Okabe and Ito's colour-blind-safe hues, muted; dashes and shapes tell the series apart in black and white as well.
constexpr std::array colours = {"#1f5f99", "#c4572b", "#4d4d4d", "#2f8f6f", "#a8648f", "#c08a1e"};
constexpr std::array dashes = {"solid", "(9,4)", "(2,3)", "(9,3,2,3)", "(16,4)", "(5,3)"};
constexpr std::array shapes = {7, 5, 6, 9, 4, 11};
constexpr const char* guide_style = " with lines lc rgb '#8a8a8a' lw 1.2 dt (4,4)";
constexpr const char* light_to_dark = "0 '#fbfaf6', 0.25 '#bfd3e2', 0.5 '#6f9fc4', 0.75 '#2c648f', 1 '#0b2744'";
constexpr const char* two_colours = "0 '#8a3a12', 0.25 '#dd9465', 0.5 '#fbfaf6', 0.75 '#6f9fc4', 1 '#123f69'";

// Lengths are in pixels of the SVG; the PNG has twice as many.
constexpr double character_width = 6.8;
constexpr double line_height = 22;
constexpr std::size_t longest_label = 90;
constexpr std::size_t longest_tick = 24;

// Where the panels are: a grid of equal plot areas, each with the same room for titles and ticks around it.
struct Layout {
  std::size_t panels = 0, grid_columns = 1;
  double plot_width = 0, plot_height = 0;
  double left = 0, right = 0, top = 0, bottom = 0;
  double title_height = 0, bar_width = 0;

  Layout(const std::string& title, std::size_t count, std::size_t asked_columns) : panels(count) {
    if (count == 0) throw std::invalid_argument("[plot] a figure needs at least one panel");
    grid_columns = std::min(count, asked_columns > 0 ? asked_columns : count == 4 ? 2 : 3);
    title_height = title.empty() ? 6 : 32;
  }
  std::size_t grid_rows() const { return (panels + grid_columns - 1) / grid_columns; }
  double cell_width() const { return left + plot_width + right; }
  double cell_height() const { return top + plot_height + bottom; }
  double plot_left(std::size_t panel) const { return cell_width() * static_cast<double>(panel % grid_columns) + left; }
  double plot_top(std::size_t panel) const {
    return title_height + cell_height() * static_cast<double>(panel / grid_columns) + top;
  }
  double width() const { return std::ceil(cell_width() * static_cast<double>(grid_columns) + bar_width); }
  double height() const { return std::ceil(cell_height() * static_cast<double>(grid_rows()) + title_height); }
};

// In single quotes gnuplot runs no command and expands no macro; a quote is doubled.
std::string quoted(const std::string& text, std::size_t longest = longest_label) {
  std::string out = "'";
  for (const char c : printable(text, longest)) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::size_t longest_of(const std::vector<std::string>& labels, std::size_t limit) {
  std::size_t longest = 0;
  for (const auto& label : labels) longest = std::max(longest, characters(printable(label, limit)));
  return longest;
}

// gnuplot takes a tick's label for a number format.
std::string quoted_tick(const std::string& text) {
  std::string out;
  for (const char c : quoted(text, longest_tick)) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

std::string number(double value) { return std::isfinite(value) ? csv_number(value) : "NaN"; }

std::string begin(const Layout& layout, const std::string& title) {
  std::ostringstream out;
  out << "set encoding utf8\nset multiplot\nset format '%.8g'\nunset key\n"
      << "set label 1 " << quoted(title) << " at screen 0.5, screen " << 1 - 19 / layout.height()
      << " center font ',15' textcolor rgb '#222222'\n";
  return out.str();
}

std::string panel_begin(const Layout& layout, std::size_t panel, const std::string& title, const std::string& xlabel,
                        const std::string& ylabel) {
  const double left = layout.plot_left(panel) / layout.width(), top = 1 - layout.plot_top(panel) / layout.height();
  const double right = left + layout.plot_width / layout.width(), bottom = top - layout.plot_height / layout.height();
  std::ostringstream out;
  out << "set lmargin at screen " << left << "\nset rmargin at screen " << right << "\nset tmargin at screen " << top
      << "\nset bmargin at screen " << bottom << "\nset xlabel " << quoted(xlabel) << " offset 0,0.7\nset ylabel "
      << quoted(ylabel) << "\nset label 2 " << quoted(title) << " at screen " << (left + right) / 2 << ", screen "
      << top + (layout.top - 14) / layout.height()
      << " center textcolor rgb '#222222'\nset tics nomirror out scale 0.5 textcolor rgb '#333333'\n";
  return out.str();
}

Range padded(Range range, bool log) {
  if (log) {
    const double factor = std::pow(range.high / range.low, 0.03);
    return {range.low / factor, range.high * factor};
  }
  // Halves first: the difference of two large numbers may overflow.
  const double margin = 0.06 * (range.high / 2 - range.low / 2);
  return {range.low - margin, range.high + margin};
}

std::string style_of(const Series& series, std::size_t place) {
  const std::size_t i = (series.style >= 0 ? static_cast<std::size_t>(series.style) : place) % colours.size();
  std::ostringstream out;
  out << " with "
      << (series.mark == Mark::line     ? "lines"
          : series.mark == Mark::points ? "points"
                                        : "linespoints")
      << " lc rgb '" << colours[i] << "'";
  if (series.mark != Mark::points) out << " lw 1.8 dt " << dashes[i];
  if (series.mark != Mark::line) out << " pt " << shapes[i] << " ps 0.6";
  return out.str();
}

// What stands in a panel's key: labels, each with the style it explains.
using Key = std::vector<std::pair<std::string, std::string>>;

Key key_of(const Panel& panel) {
  Key key;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    key.emplace_back(panel.series[i].label, style_of(panel.series[i], i));
  }
  for (const Guide& guide : panel.guides) key.emplace_back(guide.label, guide_style);
  key.erase(std::remove_if(key.begin(), key.end(), [](const auto& entry) { return entry.first.empty(); }), key.end());
  return key;
}

std::size_t key_columns(const Key& key, double width) {
  std::size_t longest = 0;
  for (const auto& [label, style] : key) longest = std::max(longest, characters(printable(label, longest_label)));
  const double fit = width / (static_cast<double>(longest) * 8 + 60);
  return std::clamp<std::size_t>(static_cast<std::size_t>(fit), 1, std::max<std::size_t>(key.size(), 1));
}

double key_height(const Key& key, double width) {
  const std::size_t columns = key_columns(key, width);
  return line_height * static_cast<double>((key.size() + columns - 1) / columns);
}

// A plot of nothing that carries a key, `top` pixels below the picture's upper edge, above the data that it would hide.
std::string key_plot(const Layout& layout, const Key& key, double left, double top, double width) {
  if (key.empty()) return "";
  std::ostringstream out;
  out << "set lmargin at screen " << left / layout.width() << "\nset rmargin at screen "
      << (left + width) / layout.width() << "\nset tmargin at screen " << 1 - top / layout.height()
      << "\nset bmargin at screen " << 1 - (top + key_height(key, width)) / layout.height()
      << "\nset key center top horizontal Left reverse maxcols " << key_columns(key, width)
      << " samplen 2.5 spacing 1.1 width 1 textcolor rgb '#333333'\n"
      << "unset border\nunset tics\nunset xlabel\nunset ylabel\nunset label 2\nunset logscale\nplot [0:1] [0:1] ";
  for (std::size_t i = 0; i < key.size(); ++i) {
    out << (i > 0 ? ", " : "") << "2" << key[i].second << " title " << quoted(key[i].first);
  }
  out << "\nunset key\nunset label 1\n";
  return out.str();
}

// A log axis of few decades has too few powers of ten for ticks.
std::string log_ticks(const std::string& axis, Range range) {
  if (range.high / range.low > 1000) return "set " + axis + "tics nomirror autofreq\n";
  std::string at;
  for (double power = std::pow(10, std::floor(std::log10(range.low))); power <= range.high; power *= 10) {
    for (const double digit : {1.0, 1.5, 2.0, 3.0, 5.0, 7.0}) {
      if (range.high / range.low > 20 && digit != 1 && digit != 2 && digit != 5) continue;
      if (digit * power >= range.low && digit * power <= range.high)
        at += (at.empty() ? "" : ", ") + number(digit * power);
    }
  }
  return "set " + axis + "tics nomirror (" + at + ")\n";
}

std::string axis(const std::string& name, Range range, bool log) {
  return (log ? "set logscale " + name + "\n" + log_ticks(name, range)
              : "unset logscale " + name + "\nset " + name + "tics nomirror autofreq\n") +
         "set " + name + "range [" + number(range.low) + ":" + number(range.high) + "]\n";
}

// How wide gnuplot's ticks are along a y axis: about six of them, at multiples of 1, 2 or 5.
double tick_width(Range range, bool log) {
  if (log) return 6 * character_width;
  const double about = range.high / 6 - range.low / 6;
  const double power = std::pow(10, std::floor(std::log10(about)));
  const double step = power * (about < 2 * power ? 1 : about < 5 * power ? 2 : 5);
  std::size_t longest = 1;
  for (int i = 0; i < 12; ++i) {
    char tick[32];
    std::snprintf(tick, sizeof tick, "%.8g", (std::ceil(range.low / step) + i) * step);
    longest = std::max(longest, std::strlen(tick));
  }
  return static_cast<double>(longest) * character_width;
}

std::string script(const Figure& figure, Layout& layout) {
  layout.plot_width = layout.grid_columns == 1 ? 540 : layout.grid_columns == 2 ? 350 : 290;
  layout.plot_height = layout.panels == 1 ? 330 : 230;
  const std::vector<Panel>& panels = figure.panels;
  double ticks = 0;
  for (const Panel& panel : panels) {
    ticks = std::max(ticks, tick_width(padded(data_range({panel}, false), panel.log_y), panel.log_y));
  }
  layout.left = std::max(68.0, 44 + ticks);
  layout.right = 22;
  layout.bottom = 52;
  const Key first = key_of(panels[0]);
  const bool one_key =
      std::all_of(panels.begin(), panels.end(), [&](const Panel& panel) { return key_of(panel) == first; });
  const double key_width = one_key ? layout.width() : layout.plot_width + layout.left;
  double key_room = 0;
  bool titles = false;
  for (const Panel& panel : panels) {
    key_room = std::max(key_room, key_height(key_of(panel), key_width));
    titles = titles || !panel.title.empty();
  }
  layout.top = 18 + (titles ? line_height : 0) + (one_key ? 0 : key_room);
  layout.title_height += one_key ? key_room : 0;

  std::ostringstream out;
  out << begin(layout, figure.title) << "set style line 1 lc rgb '#dedede' lw 0.8 dt solid\nset grid back ls 1\n";
  if (one_key) out << key_plot(layout, first, 0, layout.title_height - key_room - 2, key_width);
  for (std::size_t p = 0; p < layout.panels; ++p) {
    const Panel& panel = panels[p];
    const std::vector<Panel> ranged = figure.same_ranges ? panels : std::vector{panel};
    const Range x = padded(data_range(ranged, true), panel.log_x);
    const Range y = padded(data_range(ranged, false), panel.log_y);
    if (!one_key) {
      out << key_plot(layout, key_of(panel), layout.plot_left(p) - layout.left / 2, layout.plot_top(p) - key_room - 8,
                      key_width);
    }
    out << panel_begin(layout, p, panel.title, panel.xlabel, panel.ylabel) << axis("x", x, panel.log_x)
        << axis("y", y, panel.log_y) << "set border 3 lc rgb '#555555'\n";
    std::string plots;
    int drawn = 0;
    const auto draw = [&](const std::vector<double>& xs, const std::vector<double>& ys, const std::string& how) {
      const std::string name = "$d" + std::to_string(drawn++);
      out << name << " << EOD\n";
      for (std::size_t i = 0; i < xs.size(); ++i) out << number(xs[i]) << " " << number(ys[i]) << "\n";
      out << "EOD\n";
      plots += (plots.empty() ? "plot " : ", ") + name + " using 1:2 notitle" + how;
    };
    for (const Guide& g : panel.guides) {
      const std::vector<double> across = {g.vertical ? y.low : x.low, g.vertical ? y.high : x.high};
      const std::vector<double> at = {g.at, g.at};
      draw(g.vertical ? at : across, g.vertical ? across : at, guide_style);
    }
    for (std::size_t s = 0; s < panel.series.size(); ++s) {
      const Series& series = panel.series[s];
      if (!series.x.empty()) draw(series.x, series.y, style_of(series, s));
    }
    out << plots << "\nunset label 1\n";
  }
  return out.str();
}

// Labels for every row or column, or for every second, fifth ... where they would overlap.
std::string ticks(const std::string& axis, const std::vector<std::string>& labels, std::size_t count, double length,
                  double room, const std::string& options) {
  std::size_t step = 1;
  for (std::size_t i = 0; room * static_cast<double>(count) > length * static_cast<double>(step); ++i) {
    step = std::array<std::size_t, 3>{2, 5, 10}[i % 3] * static_cast<std::size_t>(std::pow(10, i / 3));
  }
  std::string out;
  for (std::size_t i = 0; i < count; i += step) {
    out += (i > 0 ? ", " : "") + quoted_tick(labels.empty() ? std::to_string(i) : labels[i]) + " " + std::to_string(i);
  }
  return "set " + axis + "tics nomirror " + options + " (" + out + ")\n";
}

void check(const HeatMap& map) {
  const bool fits = map.rows > 0 && map.columns > 0 && map.values.size() == map.rows * map.columns &&
                    (map.row_ticks.empty() || map.row_ticks.size() == map.rows) &&
                    (map.column_ticks.empty() || map.column_ticks.size() == map.columns);
  if (fits) return;
  throw std::invalid_argument("[plot] heat map '" + map.title +
                              "': a value a cell and a label a row and column are needed; got " +
                              std::to_string(map.rows) + " x " + std::to_string(map.columns) + " cells, " +
                              std::to_string(map.values.size()) + " values, " + std::to_string(map.row_ticks.size()) +
                              " and " + std::to_string(map.column_ticks.size()) + " labels");
}

// All maps' values: from the least to the greatest, or as far below 0 as above it when there are both signs.
Range colour_range(const HeatMaps& figure) {
  Panel all;
  for (const HeatMap& map : figure.maps) all.series.push_back({"", map.values, map.values});
  const Range range = data_range({all}, true);
  if (range.low >= 0 || range.high <= 0) return range;
  const double most = std::max(-range.low, range.high);
  return {-most, most};
}

std::string script(const HeatMaps& figure, Layout& layout) {
  double rows = 1, columns = 1;
  std::size_t row_tick = 3, column_tick = 3;
  bool titles = false;
  for (const HeatMap& map : figure.maps) {
    check(map);
    rows = std::max(rows, static_cast<double>(map.rows));
    columns = std::max(columns, static_cast<double>(map.columns));
    row_tick = std::max(row_tick, longest_of(map.row_ticks, longest_tick));
    column_tick = std::max(column_tick, longest_of(map.column_ticks, longest_tick));
    titles = titles || !map.title.empty();
  }
  const double side = layout.panels == 1 ? 420 : layout.grid_columns <= 2 ? 270 : 210;
  const double cell = side / std::max(rows, columns);
  layout.plot_width = std::max(cell * columns, side / 3);
  // The colour bar is as high as the plots, and its label stands beside it.
  const double label_length =
      character_width * static_cast<double>(characters(printable(figure.colour_label, longest_label)));
  layout.plot_height = std::max({cell * rows, side / 3, label_length / static_cast<double>(layout.grid_rows())});
  const double tick_width = static_cast<double>(column_tick) * character_width + 8;
  const bool upright = tick_width * columns > layout.plot_width && column_tick > 4;
  layout.left = 48 + static_cast<double>(row_tick) * character_width;
  layout.right = 16;
  layout.top = 16 + (titles ? line_height : 0);
  layout.bottom = 34 + (upright ? tick_width : line_height);
  layout.bar_width = 92;

  const Range range = colour_range(figure);
  std::ostringstream out;
  out << begin(layout, figure.title)
      << "set ylabel offset 0,0\nset border 15 lc rgb '#555555' lw 0.7\nset palette defined ("
      << (range.low < 0 && range.high > 0 ? two_colours : light_to_dark) << ")\nset cbrange [" << number(range.low)
      << ":" << number(range.high) << "]\nunset colorbox\n";
  for (std::size_t p = 0; p < layout.panels; ++p) {
    const HeatMap& map = figure.maps[p];
    out << panel_begin(layout, p, map.title, map.xlabel, map.ylabel) << "set xrange [-0.5:" << map.columns
        << "-0.5]\nset yrange [" << map.rows << "-0.5:-0.5]\n"
        << ticks("x", map.column_ticks, map.columns, layout.plot_width, upright ? 15 : tick_width,
                 upright ? "rotate by 90 right" : "norotate")
        << ticks("y", map.row_ticks, map.rows, layout.plot_height, 15, "norotate");
    if (p + 1 == layout.panels) {
      // Beside the whole grid, as high as its plots.
      const double height = layout.height() - layout.title_height - layout.top - layout.bottom;
      out << "set colorbox vertical user origin screen " << 1 - (layout.bar_width - 6) / layout.width() << ", screen "
          << layout.bottom / layout.height() << " size screen " << 14 / layout.width() << ", screen "
          << height / layout.height() << "\nset cblabel " << quoted(figure.colour_label)
          << " offset 1,0\nset cbtics scale 0.5\n";
    }
    out << "$m << EOD\n";
    for (std::size_t i = 0; i < map.values.size(); ++i) {
      out << number(map.values[i]) << ((i + 1) % map.columns == 0 ? "\n" : " ");
    }
    out << "EOD\nplot $m matrix with image\nunset label 1\n";
  }
  return out.str();
}

std::string data_text(const Figure& figure) {
  std::string out = "panel,series,x,y\n";
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    for (const Series& s : figure.panels[p].series) {
      for (std::size_t i = 0; i < s.x.size(); ++i) {
        out +=
            std::to_string(p) + "," + csv_field(s.label) + "," + csv_number(s.x[i]) + "," + csv_number(s.y[i]) + "\n";
      }
    }
  }
  return out;
}

std::string data_text(const HeatMaps& figure) {
  std::string out = "map,row,column,value\n";
  for (std::size_t m = 0; m < figure.maps.size(); ++m) {
    const HeatMap& map = figure.maps[m];
    for (std::size_t i = 0; i < map.values.size(); ++i) {
      const std::string row = map.row_ticks.empty() ? std::to_string(i / map.columns) : map.row_ticks[i / map.columns];
      const std::string column =
          map.column_ticks.empty() ? std::to_string(i % map.columns) : map.column_ticks[i % map.columns];
      out +=
          std::to_string(m) + "," + csv_field(row) + "," + csv_field(column) + "," + csv_number(map.values[i]) + "\n";
    }
  }
  return out;
}

std::string terminal(const std::string& kind, const Layout& layout) {
  const int scale = kind == "svg" ? 1 : 2;
  std::ostringstream out;
  out << "set terminal " << (kind == "svg" ? "svg" : "pngcairo") << " noenhanced size " << layout.width() * scale << ","
      << layout.height() * scale << " font 'Helvetica,13' background rgb '#ffffff'";
  if (kind == "png") out << " fontscale 1.5 linewidth 2 pointscale 2";
  return out.str() + "\n";
}

void say_once_that_gnuplot_is_missing() {
  static std::once_flag said;
  std::call_once(said, [] {
    std::cerr << "gnuplot is not installed: the pictures' data are written as CSV instead" << std::endl;
  });
}

template <class AnyFigure>
std::vector<std::string> save_figure(const AnyFigure& figure, Layout layout, const std::string& path) {
  const std::string commands = script(figure, layout);
  const std::string gnuplot = find_tool("gnuplot", "GNUPLOT");
  if (gnuplot.empty()) {
    say_once_that_gnuplot_is_missing();
    write_file(path + ".csv", data_text(figure));
    return {path + ".csv"};
  }
  std::vector<std::string> written;
  for (const std::string kind : {"svg", "png"}) {
    // -d: the user's own ~/.gnuplot must not change the pictures.
    std::string picture = output_of(gnuplot, {"-d"}, terminal(kind, layout) + commands);
    // A heat map's cells are pixels of an embedded image, which viewers would blur.
    const std::string image = "<image ";
    for (auto at = picture.find(image); kind == "svg" && at != std::string::npos; at = picture.find(image, at + 1)) {
      picture.insert(at + image.size(), "style='image-rendering:pixelated' ");
    }
    write_file(path + "." + kind, picture);
    written.push_back(path + "." + kind);
  }
  return written;
}

}  // namespace

std::vector<std::string> save(const Figure& figure, const std::string& path) {
  return save_figure(figure, Layout(figure.title, figure.panels.size(), figure.columns), path);
}

std::vector<std::string> save(const HeatMaps& figure, const std::string& path) {
  return save_figure(figure, Layout(figure.title, figure.maps.size(), figure.columns), path);
}

}  // namespace examples
