// Positional encoding: attention sees a set, so where a row stands has to be written into the row. Four ways to write
// it, what fails in three of them, and what sines and cosines (Vaswani et al., 2017, section 3.5) give: every number
// bounded, every step equally long, products that know only the distance, moves that are rotations, and positions that
// do not collide once the rows are wide enough.
//
// Distance is Euclidean throughout. Everything that is printed as true is checked; the program exits 1 where it is not.
#include <algorithm>
#include <cmath>
#include <functional>

#include "autograd/random.hpp"
#include "examples/support/csv.hpp"
#include "examples/support/program.hpp"
#include "examples/support/show.hpp"
#include "nn/positional_encoding.hpp"

using namespace tapegrad;
using examples::draw;
using examples::expect;
using examples::show;
using examples::text;
using Numbers = std::vector<double>;

namespace {

struct Options {
  std::size_t length = 400;  // positions that must not collide
  double tolerance = 0.1;    // rows that are nearer collide; neighbours are 0.96 apart, or more
};

const double kTurn = 2 * std::acos(-1.0);

/// A row for each position.
using Rows = std::vector<Numbers>;

Rows to_rows(const Tensor& table) {
  Rows rows;
  const Real* from = table.value().data();
  for (std::size_t i = 0; i < table.extent(0); ++i, from += table.extent(1)) {
    rows.emplace_back(from, from + table.extent(1));
  }
  return rows;
}

double distance(const Numbers& a, const Numbers& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

Numbers column(const Rows& rows, std::size_t j) {
  Numbers values;
  for (const Numbers& row : rows) values.push_back(row[j]);
  return values;
}

Numbers count_up(double first, std::size_t n, double step = 1) {
  Numbers numbers;
  for (std::size_t i = 0; i < n; ++i) numbers.push_back(first + step * static_cast<double>(i));
  return numbers;
}

// ---- four ideas -----------------------------------------------------------------------------------------------------

struct Idea {
  std::string name;
  std::string fails;
  std::function<Rows(std::size_t)> encode;  // n positions
  bool bounded, fixed, even;                // what is claimed
};

constexpr std::size_t kShort = 20, kLong = 60, kBits = 6;

Rows integers(std::size_t n) {
  Rows rows;
  for (std::size_t i = 0; i < n; ++i) rows.push_back({static_cast<double>(i)});
  return rows;
}

Rows fractions(std::size_t n) {
  Rows rows;
  for (std::size_t i = 0; i < n; ++i) rows.push_back({static_cast<double>(i) / static_cast<double>(n - 1)});
  return rows;
}

Rows binary(std::size_t n) {
  Rows rows;
  for (std::size_t i = 0; i < n; ++i) {
    Numbers bits;
    for (std::size_t b = 0; b < kBits; ++b) bits.push_back(static_cast<double>(i >> b & 1));
    rows.push_back(bits);
  }
  return rows;
}

/// How far each position is from the next.
Numbers steps(const Rows& rows) {
  Numbers lengths;
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) lengths.push_back(distance(rows[i], rows[i + 1]));
  return lengths;
}

std::string yes_or_no(bool so) { return so ? "yes" : "NO"; }

/// Columns above each other, each 1 high, the first at the bottom. Bits jump half-way between positions.
std::vector<examples::Series> stacked(const Rows& rows, bool bits) {
  std::vector<examples::Series> series;
  for (std::size_t j = 0; j < rows[0].size(); ++j) {
    examples::Series curve{"", {}, {}, examples::Mark::line, 0};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double height = static_cast<double>(j) + 0.8 * (bits ? rows[i][j] : (rows[i][j] + 1) / 2);
      for (const double shift : bits ? Numbers{-0.5, 0.5} : Numbers{0}) {
        curve.x.push_back(static_cast<double>(i) + shift);
        curve.y.push_back(height);
      }
    }
    series.push_back(curve);
  }
  return series;
}

void compare_ideas(const std::string& out) {
  const std::vector<Idea> ideas = {
      {"integers", "grow without bound: longer sequences bring numbers never seen", integers, false, true, true},
      {"[0,1]", "the same position is another number in a longer sequence", fractions, true, false, true},
      {"binary", "neighbours are 1 apart here and 2.4 there", binary, true, true, false},
      {"sinusoids", "", [](std::size_t n) { return to_rows(nn::sinusoids(n, kBits)); }, true, true, true},
  };
  show("Four ideas, for sequences of 20 and of 60 positions:");
  show("  idea        within [-1,1]   same in both   even steps    step from - to     what fails");
  examples::Figure figure{"Four ways to write a position down, and how far each is from the next", {}, 4};
  std::vector<examples::Panel> step_panels;
  for (const Idea& idea : ideas) {
    const Rows few = idea.encode(kShort), many = idea.encode(kLong);
    bool bounded = true, fixed = true;
    for (const Numbers& row : many) {
      for (double x : row) bounded = bounded && std::abs(x) <= 1;
    }
    for (std::size_t i = 0; i < kShort; ++i) fixed = fixed && distance(few[i], many[i]) < 1e-6;
    const Numbers lengths = steps(many);
    const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
    const bool even = *most - *least < 1e-5 * *most;
    show(text("  %-11s %-15s %-14s %-13s %.3f - %-10.3f", idea.name.c_str(), yes_or_no(bounded).c_str(),
              yes_or_no(fixed).c_str(), yes_or_no(even).c_str(), *least, *most) +
         (idea.fails.empty() ? "nothing of these" : idea.fails));
    expect(bounded == idea.bounded && fixed == idea.fixed && even == idea.even, idea.name + " do as the table says");

    examples::Panel codes{idea.name, "position", "value", {}, {}};
    if (many[0].size() == 1) {
      codes.series = {{"of 60", count_up(0, kLong), column(many, 0), examples::Mark::line, 0},
                      {"of 20", count_up(0, kShort), column(few, 0), examples::Mark::points, 1}};
    } else {
      codes.ylabel = idea.name == "binary" ? "bit" : "column";
      codes.series = stacked(many, idea.name == "binary");
    }
    figure.panels.push_back(codes);
    step_panels.push_back({"",
                           "position",
                           "step to the next",
                           {{"of 60", count_up(0, kLong - 1), lengths, examples::Mark::line, 0},
                            {"of 20", count_up(0, kShort - 1), steps(few), examples::Mark::points, 1}},
                           {{false, 0, ""}}});
  }
  figure.panels.insert(figure.panels.end(), step_panels.begin(), step_panels.end());
  const Rows wrapped = binary((1u << kBits) + 1);
  expect(distance(wrapped.front(), wrapped.back()) == 0, "6 bits begin again at position 64");
  show("  6 bits also begin again at position 64.");
  draw(figure, out + "/positional_ideas");
}

// ---- what sinusoids look like ---------------------------------------------------------------------------------------

void draw_table(const std::string& out) {
  constexpr std::size_t n = 200, d = 150;
  const Tensor table = nn::sinusoids(n, d);
  show("\nThe encoding of 200 positions, 150 wide: later columns turn more slowly.");
  const Array& values = table.value();
  draw(
      examples::HeatMaps{
          "Sines and cosines of 200 positions, 150 wide",
          "value",
          {{"", "column", "position", n, d, Numbers(values.data(), values.data() + values.size()), {}, {}}}},
      out + "/positional_heat_map");

  const Rows rows = to_rows(nn::sinusoids(60, 32));
  examples::Panel panel{"", "position", "value", {}, {}};
  for (std::size_t j = 6; j < 10; ++j) {
    panel.series.push_back({text("column %zu (%s)", j, j % 2 == 0 ? "sine" : "cosine"), count_up(0, 60),
                            column(rows, j), examples::Mark::line});
  }
  const double period = kTurn * std::pow(10000.0, 6 / 32.0);
  show(text("Single columns, 32 wide: columns 6 and 7 repeat after %.1f positions, 8 and 9 after %.1f.", period,
            period * std::pow(10000.0, 2 / 32.0)));
  draw(examples::Figure{"Four columns of the encoding, 32 wide", {panel}}, out + "/positional_columns");
}

// ---- products and rotations -----------------------------------------------------------------------------------------

void compare_products(Rng& rng, const std::string& out) {
  constexpr int furthest = 100;
  constexpr std::size_t d = 128;
  double worst = 0, worst_mirror = 0, worst_turn = 0;
  examples::Panel panel{"from three positions", "offset", "PE(i) . PE(i + offset)", {}, {}};
  const Numbers offsets = count_up(-furthest, 2 * furthest + 1);
  Numbers formula;
  for (double offset : offsets) formula.push_back(nn::offset_product(offset, d));
  panel.series.push_back({"sum of cosines", offsets, formula, examples::Mark::line, 0});
  for (int start = 0; start < 3; ++start) {
    const auto i = static_cast<std::int64_t>(furthest + rng.below(2000));
    const Tensor row = nn::sinusoids(1, d, i);
    const Rows products =
        to_rows(matmul(nn::sinusoids(2 * furthest + 1, d, i - furthest), row, Transpose::no, Transpose::yes));
    examples::Series points{text("i = %lld", static_cast<long long>(i)), {}, {}, examples::Mark::points, start + 1};
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      worst = std::max(worst, std::abs(products[k][0] - formula[k]));
      worst_mirror = std::max(worst_mirror, std::abs(products[k][0] - products[offsets.size() - 1 - k][0]));
      if (k % 9 != static_cast<std::size_t>(3 * start)) continue;  // each start its own points, so that all are seen
      points.x.push_back(offsets[k]);
      points.y.push_back(products[k][0]);
    }
    panel.series.push_back(points);
    const double delta = std::floor(200 * rng.uniform()) - 100;
    const Tensor turned = matmul(nn::rotation(delta, d), row, Transpose::no, Transpose::yes);
    const Tensor moved = nn::sinusoids(1, d, i + static_cast<std::int64_t>(delta));
    worst_turn = std::max(worst_turn, distance(column(to_rows(turned), 0), to_rows(moved)[0]));
  }
  show(text("\nProducts of rows, 128 wide, offsets -100 ... 100 from three random positions:"));
  show(text("  from the sum of cosines, which knows the offset only, they differ by at most %.1e (of 64)", worst));
  show(text("  between offset and -offset by at most %.1e", worst_mirror));
  show(text("  the rotation by delta moves a row to the row delta further on, to %.1e", worst_turn));
  expect(worst < 1e-4, "products depend on the offset only");
  expect(worst_mirror < 2e-4, "products are symmetric");
  expect(worst_turn < 1e-4, "a move is a rotation");
  expect(*std::max_element(formula.begin(), formula.end()) == formula[furthest] && formula[furthest] == d / 2,
         "a row's product with itself is the largest");

  examples::Panel widths{"relative to offset 0", "offset", "product / (d/2)", {}, {}};
  for (const std::size_t width : {32u, 128u, 512u}) {
    Numbers relative;
    for (double offset : offsets) {
      relative.push_back(nn::offset_product(offset, width) / (static_cast<double>(width) / 2));
    }
    widths.series.push_back({text("d = %zu", width), offsets, relative, examples::Mark::line});
  }
  draw(examples::Figure{"Dot products of encodings know the distance, and not the place", {panel, widths}},
       out + "/positional_products");
}

// ---- collisions -----------------------------------------------------------------------------------------------------

struct Pair {
  std::size_t first = 0, second = 0;
  double distance = INFINITY;
};

/// The nearest pair among n positions at each offset 1 ... n-1: by all pairs of rows.
std::vector<Pair> nearest_by_offset(const Rows& rows) {
  std::vector<Pair> nearest(rows.size() - 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = i + 1; k < rows.size(); ++k) {
      const double apart = distance(rows[i], rows[k]);
      if (apart < nearest[k - i - 1].distance) nearest[k - i - 1] = {i, k, apart};
    }
  }
  return nearest;
}

/// The nearest pair of n positions, in fewer steps. Each sine with its cosine turns on a circle, so how far apart two
/// positions are on it depends on the offset only: squared, together, w - 2 offset_product for the even part, w wide.
/// Only the sine that an odd width has left over depends on the position, and is tried where the rest is near.
Pair nearest_pair(std::size_t n, std::size_t d) {
  Numbers frequencies;
  for (std::size_t j = 0; 2 * j < d; ++j) {
    frequencies.push_back(std::pow(10000.0, -2 * static_cast<double>(j) / static_cast<double>(d)));
  }
  Numbers alone;
  for (std::size_t i = 0; i < n && d % 2 == 1; ++i)
    alone.push_back(std::sin(frequencies.back() * static_cast<double>(i)));
  Pair nearest;
  for (std::size_t offset = 1; offset < n; ++offset) {
    double squares = 0;
    for (std::size_t j = 0; j < d / 2; ++j) {
      const double chord = 2 * std::sin(frequencies[j] * static_cast<double>(offset) / 2);
      squares += chord * chord;
    }
    if (squares >= nearest.distance * nearest.distance) continue;
    if (d % 2 == 0) nearest = {0, offset, std::sqrt(squares)};
    for (std::size_t i = 0; i + offset < n && d % 2 == 1; ++i) {
      const double difference = alone[i + offset] - alone[i];
      const double apart = std::sqrt(squares + difference * difference);
      if (apart < nearest.distance) nearest = {i, i + offset, apart};
    }
  }
  return nearest;
}

std::size_t smallest_width(std::size_t n, double tolerance) {
  std::size_t d = 1;
  while (nearest_pair(n, d).distance < tolerance) ++d;
  return d;
}

constexpr std::size_t kNarrow = 3;       // columns, in which
constexpr std::size_t kPositions = 400;  // positions collide

struct Collisions {
  Rows rows;
  std::vector<Pair> by_offset;  // the nearest pair at each offset
  Pair nearest;                 // of all
};

/// Every pair whose rows are nearer than the tolerance: columns of first positions, of second ones, and of distances.
std::vector<Numbers> colliding_pairs(const Rows& rows, double tolerance) {
  std::vector<Numbers> found(3);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = i + 1; k < rows.size(); ++k) {
      const double apart = distance(rows[i], rows[k]);
      if (apart >= tolerance) continue;
      found[0].push_back(static_cast<double>(i));
      found[1].push_back(static_cast<double>(k));
      found[2].push_back(apart);
    }
  }
  return found;
}

Collisions search_narrow_rows(double tolerance, const std::string& out) {
  Collisions all;
  all.rows = to_rows(nn::sinusoids(kPositions, kNarrow));
  all.by_offset = nearest_by_offset(all.rows);
  all.nearest = *std::min_element(all.by_offset.begin(), all.by_offset.end(),
                                  [](const Pair& a, const Pair& b) { return a.distance < b.distance; });
  const Pair nearest = all.nearest;
  const Numbers neighbours = steps(all.rows);
  const double step = *std::min_element(neighbours.begin(), neighbours.end());
  const std::vector<Numbers> found = colliding_pairs(all.rows, tolerance);
  show(text("\n400 positions, 3 wide. Neighbours are at least %.2f apart; closer than %g is a collision:", step,
            tolerance));
  show(text("  %zu pairs collide; the nearest are %zu and %zu, %.4f apart", found[0].size(), nearest.first,
            nearest.second, nearest.distance));
  const double gap = static_cast<double>(nearest.second - nearest.first);
  show(
      text("  after %g positions, columns 0 and 1 have gone round %.3f times, nearly whole ones, and column 2 only "
           "%.3f times:",
           gap, gap / kTurn, gap / kTurn / std::pow(10000.0, 2.0 / kNarrow)));
  for (std::size_t j = 0; j < kNarrow; ++j) {
    show(text("  column %zu: %9.5f %9.5f", j, all.rows[nearest.first][j], all.rows[nearest.second][j]));
  }
  expect(!found[0].empty() && nearest.distance < tolerance && step > tolerance, "rows 3 wide collide");
  const Pair again = nearest_pair(kPositions, kNarrow);
  expect(again.first == nearest.first && again.second == nearest.second &&
             std::abs(again.distance - nearest.distance) < 1e-5,
         "the two searches agree");
  examples::write_csv(out + "/positional_pairs.csv", {"first", "second", "distance"},
                      {found[0], found[1], examples::rounded(found[2])});
  show("  " + out + "/positional_pairs.csv");
  return all;
}

void show_smallest_width(std::size_t length, double tolerance) {
  const std::size_t enough = smallest_width(length, tolerance);
  show(text("\nThe smallest width without a collision among %zu positions is %zu:", length, enough));
  show("  width   nearest pair        apart");
  for (std::size_t width = 1; width <= enough; ++width) {
    const Pair pair = nearest_pair(length, width);
    show(text("  %5zu   %5zu and %-7zu  %.4f%s", width, pair.first, pair.second, pair.distance,
              pair.distance < tolerance ? "  collide" : ""));
  }
  if (length > 2000) return;  // all pairs of rows once more, as they are stored
  const std::vector<Pair> all = nearest_by_offset(to_rows(nn::sinusoids(length, enough)));
  expect(std::all_of(all.begin(), all.end(), [&](const Pair& p) { return p.distance > tolerance - 1e-5; }),
         "that width has no collision");
}

/// All columns before the one and before the other of the nearest two: what attention would have to tell apart.
examples::Panel twins_panel(const Collisions& collisions) {
  examples::Panel panel{"the columns before the nearest pair", "position from there", "value", {}, {{true, 0, ""}}};
  for (std::size_t j = 0; j < kNarrow; ++j) {
    for (const std::size_t end : {collisions.nearest.first, collisions.nearest.second}) {
      const auto last = collisions.rows.begin() + static_cast<std::ptrdiff_t>(end);
      const bool first = end == collisions.nearest.first;
      panel.series.push_back({j > 0 ? "" : text("%zu", end), count_up(-20, 21), column({last - 20, last + 1}, j),
                              first ? examples::Mark::line : examples::Mark::points, first ? 0 : 1});
    }
  }
  return panel;
}

examples::Panel offsets_panel(const Collisions& collisions, double tolerance) {
  examples::Panel panel{"3 wide, 400 long", "offset", "nearest pair at that offset", {}, {{false, tolerance, ""}}};
  panel.series = {{"pairs", {}, {}, examples::Mark::points, 2}, {"collision", {}, {}, examples::Mark::points, 1}};
  panel.log_y = true;
  for (const Pair& pair : collisions.by_offset) {
    for (examples::Series& series : panel.series) {
      if (&series == &panel.series[1] && pair.distance >= tolerance) continue;
      series.x.push_back(static_cast<double>(pair.second - pair.first));
      series.y.push_back(pair.distance);
    }
  }
  return panel;
}

/// Also says how wide rows must be for sequences of several lengths.
examples::Panel widths_panel(bool quick, double tolerance) {
  examples::Panel panel{"wider rows", "width", "nearest pair", {}, {{false, tolerance, ""}}};
  panel.log_y = true;
  show("\nlength   smallest width without a collision");
  for (const std::size_t length :
       quick ? std::vector<std::size_t>{10, 100, 400} : std::vector<std::size_t>{10, 100, 400, 2000, 10000}) {
    show(text("%6zu   %zu", length, smallest_width(length, tolerance)));
    examples::Series curve{text("n = %zu", length), {}, {}, examples::Mark::line_points};
    for (std::size_t width = 2; width <= 10; ++width) {
      curve.x.push_back(static_cast<double>(width));
      curve.y.push_back(nearest_pair(length, width).distance);
    }
    if (length >= 100) panel.series.push_back(curve);
  }
  return panel;
}

void find_collisions(const Options& options, bool quick, const std::string& out) {
  const double tolerance = options.tolerance;
  const Collisions collisions = search_narrow_rows(tolerance, out);
  show_smallest_width(options.length, tolerance);
  draw(
      examples::Figure{text("Positions collide in narrow rows: nearer than %g", tolerance),
                       {twins_panel(collisions), offsets_panel(collisions, tolerance), widths_panel(quick, tolerance)}},
      out + "/positional_collisions");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return examples::run(
      argc, argv, "positional_encoding",
      "Positional encodings: four ideas, sines and cosines, their products and rotations, and positions that collide.",
      [&](CLI::App& app) {
        const char* const length = "positions that must not collide, for the smallest width";
        examples::add_number(app, "--length", options.length, 2, 20000, length)->capture_default_str();
        const char* const tolerance = "two positions collide when their rows are nearer than this";
        examples::add_number(app, "--tolerance", options.tolerance, 1e-4, 0.9, tolerance)->capture_default_str();
      },
      [&](const examples::Common& common) {
        examples::prepare_output_folder(common.out);
        Rng rng(common.seed);
        compare_ideas(common.out);
        draw_table(common.out);
        compare_products(rng, common.out);
        find_collisions(options, common.quick, common.out);
      });
}
