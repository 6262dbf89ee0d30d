// Pictures for pages and for the terminal. gnuplot draws the former; without it their data are written as CSV.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace examples {

enum class Mark { line, points, line_points };

/// One curve or cloud of points. A point that is not finite leaves a gap.
struct Series {
  std::string label;  ///< in the key; empty: not in the key
  std::vector<double> x;
  std::vector<double> y;
  Mark mark = Mark::line;
  int style = -1;  ///< colour, dash and point shape, from 0; -1: the series' place in its panel
};

/// A thin grey line across the panel.
struct Guide {
  bool vertical = false;
  double at = 0;
  std::string label;  ///< in the key; empty: not in the key
};

struct Panel {
  std::string title;
  std::string xlabel;
  std::string ylabel;
  std::vector<Series> series;
  std::vector<Guide> guides;
  bool log_x = false;
  bool log_y = false;
};

/// Panels in a grid, row by row.
struct Figure {
  std::string title;
  std::vector<Panel> panels;
  std::size_t columns = 0;   ///< 0: at most three side by side
  bool same_ranges = false;  ///< all panels have the ranges of all data together
};

/// A matrix, row 0 at the top.
struct HeatMap {
  std::string title;
  std::string xlabel;
  std::string ylabel;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;             ///< rows * columns, row by row; NaN is left white
  std::vector<std::string> row_ticks;     ///< a label per row, or empty for the rows' numbers
  std::vector<std::string> column_ticks;  ///< a label per column, or empty for the columns' numbers
};

/// Heat maps in a grid with one colour scale: light to dark, or about 0 in two colours when there are both signs.
struct HeatMaps {
  std::string title;
  std::string colour_label;
  std::vector<HeatMap> maps;
  std::size_t columns = 0;  ///< 0: at most three side by side
};

/// Draws `path`.svg and `path`.png and returns their names. Without gnuplot (the environment's GNUPLOT, else the one in
/// PATH) says so once on stderr, writes `path`.csv and returns that name. Each file is written whole or not at all.
/// Throws std::invalid_argument for data that do not fit together, std::runtime_error when gnuplot or a write fails.
std::vector<std::string> save(const Figure& figure, const std::string& path);
std::vector<std::string> save(const HeatMaps& figure, const std::string& path);

/// True when the environment says that the terminal shows UTF-8.
bool utf8_terminal();

/// The panel as text of at most `width` columns and about `height` lines, with the axes' ranges and a key: lines in
/// braille dots and points as symbols, or all in ASCII.
std::string terminal_plot(const Panel& panel, std::size_t width = 72, std::size_t height = 16,
                          bool utf8 = utf8_terminal());

}  // namespace examples
