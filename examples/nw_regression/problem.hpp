// What kernel regression is asked to learn: a textbook's curve, or a table of the user's.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "examples/support/csv.hpp"
#include "examples/support/files.hpp"
#include "examples/support/plot_parts.hpp"
#include "examples/support/show.hpp"
#include "tapegrad.hpp"

namespace nw_regression {

using namespace tapegrad;
using examples::BadInput;
using examples::text;
using Numbers = std::vector<double>;

constexpr int kTestPoints = 60;          // of the textbook
constexpr std::size_t kMostRows = 4000;  // training takes (n, n-1) arrays: 0.7 GB then

/// Numbers in the user's units, and the same ones as the estimators see them: (value - offset) / unit.
struct Scale {
  double offset = 0, unit = 1;
  Tensor to_tensor(const Numbers& values) const {
    Array scaled = empty_array({values.size()});
    for (std::size_t i = 0; i < values.size(); ++i) scaled(i) = static_cast<Real>((values[i] - offset) / unit);
    return scaled;
  }
  Numbers to_units(const Tensor& tensor) const {
    Numbers values;
    for (double value : tensor.value().storage()) values.push_back(offset + unit * value);
    return values;
  }
};

/// What is to be learned, in the user's units, sorted by x.
struct Problem {
  std::string x_name = "x", y_name = "y";
  Numbers x, y;
  Numbers test_x;
  Numbers truth;  // of the test points; empty where nobody knows it
  Scale x_scale, y_scale;
};

inline double true_curve(double x) { return 2 * std::sin(x) + std::pow(x, 0.8); }

/// 50 noisy points of a known curve, and test points that run beyond them, where an estimator has to guess.
inline Problem textbook_problem(Rng& rng) {
  Problem problem;
  for (int i = 0; i < 50; ++i) problem.x.push_back(5 * rng.uniform());
  std::sort(problem.x.begin(), problem.x.end());
  for (double x : problem.x) problem.y.push_back(true_curve(x) + 0.5 * rng.normal());
  for (int i = 0; i < kTestPoints; ++i) {
    problem.test_x.push_back(i / 10.0);
    problem.truth.push_back(true_curve(i / 10.0));
  }
  return problem;
}

/// Offset and unit that bring y to mean 0 and standard deviation 1. Divided by the largest one first, so that no square
/// overflows; a constant y keeps the unit 1.
inline Scale standardise(const Numbers& values) {
  double largest = 0, sum = 0, squares = 0;
  for (double v : values) largest = std::max(largest, std::abs(v));
  if (largest == 0) return {};
  for (double v : values) sum += v / largest;
  const double mean = sum / static_cast<double>(values.size());
  for (double v : values) squares += (v / largest - mean) * (v / largest - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
  return {mean * largest, deviation > 1e-12 ? deviation * largest : 1};
}

/// The user's table. y is scaled to vary by about 1, as the textbook's does; x in widths of a kernel comes later.
inline Problem user_problem(const std::string& path, const std::string& x_name, const std::string& y_name) {
  const examples::Columns columns = examples::choose_columns(examples::read_csv(path), x_name, y_name);
  const std::size_t n = columns.x.size();
  if (n > kMostRows) throw BadInput(text("%s: at most %zu rows fit; got %zu", path.c_str(), kMostRows, n));
  Problem problem;
  problem.x_name = examples::printable(columns.x_name, 30);
  problem.y_name = examples::printable(columns.y_name, 30);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return columns.x[a] < columns.x[b]; });
  for (std::size_t i : order) {
    problem.x.push_back(columns.x[i]);
    problem.y.push_back(columns.y[i]);
  }
  const double low = problem.x.front(), range = problem.x.back() - low;
  if (!(range > 0)) throw BadInput(path + ": every " + problem.x_name + " is the same: there is no curve");
  if (!std::isfinite(range)) throw BadInput(path + ": " + problem.x_name + " has too wide a range");
  // Four between two neighbours on average, so that a curve that goes up and down with every row can be seen.
  const std::size_t points = std::clamp<std::size_t>(4 * n, kTestPoints, 2000);
  for (std::size_t i = 0; i < points; ++i) {
    problem.test_x.push_back(low + range * static_cast<double>(i) / static_cast<double>(points - 1));
  }
  problem.y_scale = standardise(problem.y);
  problem.x_scale.offset = low;
  return problem;
}

}  // namespace nw_regression
