// What kernel regression shows: errors in the terminal, tables and pictures in a folder.
#pragma once

#include <iostream>

#include "examples/nw_regression/problem.hpp"
#include "examples/support/plot.hpp"

namespace nw_regression {

/// What an estimator says.
struct Estimate {
  std::string name;
  std::string column;  // its name in tables
  Tensor attention;    // (test points, keys): each row sums to 1
  Numbers curve;       // its predictions for the test points
  Numbers left_out;    // for each known point, predicted from all the others
};

/// Root of the mean squared difference, over the predictions that there are; NaN if there is none. Differences are
/// taken in `unit`s, so that no square overflows.
inline double rmse(const Numbers& predictions, const Numbers& targets, double unit) {
  double squares = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!std::isfinite(predictions[i])) continue;
    const double difference = predictions[i] / unit - targets[i] / unit;
    squares += difference * difference;
    ++count;
  }
  return count > 0 ? unit * std::sqrt(squares / static_cast<double>(count)) : NAN;
}

/// The learned widths 1 / |w|, in the units of x.
inline void print_widths(const Problem& problem, const Tensor& w) {
  Numbers widths;
  for (double weight : w.value().storage()) widths.push_back(problem.x_scale.unit / std::abs(weight));
  std::sort(widths.begin(), widths.end());
  if (widths.size() == 1) {
    std::cout << text("learned width 1/|w|: %.4g\n", widths[0]);
  } else {
    std::cout << text("learned widths 1/|w|: %.4g to %.4g, median %.4g\n", widths.front(), widths.back(),
                      widths[widths.size() / 2]);
  }
}

inline void print_errors(const Problem& problem, const std::vector<Estimate>& estimates) {
  const bool known = !problem.truth.empty();
  std::cout << text("\nroot mean squared error of %-21s%12s%s\n", problem.y_name.c_str(), "left out",
                    known ? "    to truth" : "");
  for (const Estimate& e : estimates) {
    std::cout << text("  %-46s%12.6g", e.name.c_str(), rmse(e.left_out, problem.y, problem.y_scale.unit));
    if (known) std::cout << text("%12.6g", rmse(e.curve, problem.truth, 1));
    std::cout << '\n';
  }
  std::cout << "left out: each point predicted from all others"
            << (known ? "; to truth: the test points against the curve without noise" : "")
            << ".\nThe parametric estimator was trained on its left-out errors, so they flatter it.\n";
  for (const Estimate& e : estimates) {
    const auto none = [](const Numbers& all) {
      return std::count_if(all.begin(), all.end(), [](double v) { return v != v; });
    };
    if (none(e.curve) + none(e.left_out) == 0) continue;
    std::cout << text(
        "%s: no key within the width of %td test points and %td left-out points, so no prediction (nan)\n",
        e.name.c_str(), none(e.curve), none(e.left_out));
  }
}

/// At most about `most` of the training points are drawn, evenly picked; lines come last, on top of them.
inline examples::Panel panel_of(const Problem& problem, const Estimate& estimate, std::size_t most) {
  using examples::Mark;
  examples::Panel panel{estimate.name, problem.x_name, problem.y_name, {}, {}};
  examples::Series points{"", {}, {}, Mark::points, 2};
  for (std::size_t i = 0; i < problem.x.size(); i += 1 + problem.x.size() / (most + 1)) {
    points.x.push_back(problem.x[i]);
    points.y.push_back(problem.y[i]);
  }
  const std::size_t all = problem.x.size(), drawn = points.x.size();
  points.label = drawn == all ? "training points" : text("training points (%zu of %zu)", drawn, all);
  panel.series.push_back(points);
  if (!problem.truth.empty()) panel.series.push_back({"truth", problem.test_x, problem.truth, Mark::line, 1});
  panel.series.push_back({"prediction", problem.test_x, estimate.curve, Mark::line, 0});
  return panel;
}

/// Each row in parts of its largest weight: a row far from all points would else outshine the others. At most 60 rows,
/// evenly picked; where there are more than 120 keys, a column is the largest weight of some neighbours.
inline examples::HeatMap map_of(const Problem& problem, const Estimate& estimate) {
  const Array& attention = estimate.attention.value();
  const std::size_t queries = attention.shape()[0], keys = attention.shape()[1];
  const std::size_t row_step = (queries + 59) / 60, column_step = (keys + 119) / 120;
  const std::string of = ", " + problem.x_name;
  examples::HeatMap map{estimate.name, "training points" + of, "test points" + of, 0, 0, {}, {}, {}};
  Numbers row_x, column_x;
  for (std::size_t r = 0; r < queries; r += row_step) {
    const Real* row = attention.data() + r * keys;
    const double largest = *std::max_element(row, row + keys);
    for (std::size_t c = 0; c < keys; c += column_step) {
      const double weight = *std::max_element(row + c, row + std::min(c + column_step, keys));
      map.values.push_back(largest > 0 ? weight / largest : 0);
    }
    row_x.push_back(problem.test_x[r]);
  }
  for (std::size_t c = 0; c < keys; c += column_step) column_x.push_back(problem.x[c]);
  map.rows = row_x.size();
  map.columns = column_x.size();
  map.row_ticks = examples::labels_of(row_x, 3);
  map.column_ticks = examples::labels_of(column_x, 3);
  return map;
}

/// Tables and pictures, each whole or not at all.
inline void write_results(const std::string& folder, const Problem& problem, const std::vector<Estimate>& estimates,
                          const Numbers& losses) {
  std::vector<std::string> curve_names{problem.x_name}, left_out_names{problem.x_name, problem.y_name};
  const double y_spread = problem.y_scale.unit;
  std::vector<Numbers> curves{examples::rounded(problem.test_x, problem.x.back() - problem.x.front())};
  std::vector<Numbers> left_out{problem.x, problem.y};
  if (!problem.truth.empty()) {
    curve_names.push_back("truth");
    curves.push_back(examples::rounded(problem.truth, y_spread));
  }
  examples::Figure figure{"Kernel regression by attention pooling", {}};
  figure.same_ranges = true;
  for (const Estimate& e : estimates) {
    curve_names.push_back(e.column);
    left_out_names.push_back(e.column);
    curves.push_back(examples::rounded(e.curve, y_spread));
    left_out.push_back(examples::rounded(e.left_out, y_spread));
    figure.panels.push_back(panel_of(problem, e, 500));
  }
  std::vector<std::string> files{folder + "/predictions.csv", folder + "/left_out.csv"};
  examples::write_csv(files[0], curve_names, curves);
  examples::write_csv(files[1], left_out_names, left_out);

  Numbers epochs(losses.size());
  std::iota(epochs.begin(), epochs.end(), 0);
  examples::Panel loss{"", "epochs", "sum of squared errors", {{"", epochs, losses}}, {}};
  examples::HeatMaps attention{"Attention of a test point to the training points",
                               "weight / largest of its row",
                               {map_of(problem, estimates[1]), map_of(problem, estimates[2])}};
  for (const auto& written :
       {examples::save(figure, folder + "/estimators"),
        examples::save(examples::Figure{"Training the parametric estimator", {loss}}, folder + "/loss"),
        examples::save(attention, folder + "/attention")}) {
    files.insert(files.end(), written.begin(), written.end());
  }
  std::cout << "\nwrote";
  for (const std::string& file : files) std::cout << ' ' << file;
  std::cout << '\n';
}

}  // namespace nw_regression
