// Attention as a soft lookup. A dictionary returns the value of the key that equals the query; attention returns an
// average of all values, weighted by how well each key fits the query:
//
//   weights = softmax(fit(query, key) over the keys),  answer = weights times values
//
// Three tables of weights, from hand-made to measured: what attracts attention with and without a query, a lookup that
// becomes exact, and a Gaussian kernel that narrows from the average of all values to the nearest neighbour's value.
// Everything that is printed as true is checked; the program exits 1 where it is not.
#include <algorithm>
#include <cmath>

#include "examples/support/program.hpp"
#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::draw;
using examples::expect;
using examples::largest_difference;
using examples::show;
using examples::text;
using examples::to_numbers;
using Numbers = std::vector<double>;

namespace {

void expect_rows_of_one(const Tensor& weights) {
  expect(largest_difference(sum(weights, -1), Tensor(1)) < 1e-5, "every query's weights sum to 1");
}

// ---- two kinds of cue -----------------------------------------------------------------------------------------------

/// Salience is in the things themselves, and works without any intention: a nonvolitional cue, the same for all
/// queries. A query is what one has in mind: a volitional cue. Scores add the two.
void show_cues(const std::string& out) {
  const std::vector<std::string> things = {"alarm clock", "letter", "apple", "newspaper", "spoon"};
  const std::vector<std::string> minds = {"nothing", "something to read", "something to eat"};
  const Tensor salience{3, 0.5, 1, 0, 0};
  const Tensor keys{{0.2, 0}, {1, 0}, {0, 1}, {0.9, 0}, {0, 0.4}};  // how readable, how edible
  const Tensor queries{{0, 0}, {6, 0}, {0, 6}};
  const Tensor weights = softmax(salience + matmul(queries, keys, Transpose::no, Transpose::yes), 1);
  expect_rows_of_one(weights);

  show(
      "What attracts attention. Salience alone is a nonvolitional cue: it is in the keys. A query is a volitional "
      "one.");
  std::string header = text("  %-18s", "in mind");
  for (const std::string& thing : things) header += text("%12s", thing.c_str());
  show(header);
  for (std::size_t i = 0; i < minds.size(); ++i) {
    std::string line = text("  %-18s", minds[i].c_str());
    for (std::size_t j = 0; j < things.size(); ++j) line += text("%12.3f", static_cast<double>(weights.value()(i, j)));
    show(line);
    const auto most = static_cast<std::size_t>(argmax(weights, 1).data()[i]);
    expect(most == i, "with " + minds[i] + " in mind, the " + things[i] + " has the most weight");
  }
  examples::HeatMap map = examples::heat_map("", "keys", "queries", weights);
  map.row_ticks = minds;
  map.column_ticks = things;
  draw(examples::HeatMaps{"Attention to five things, by what is in mind", "weight", {map}}, out + "/cues_things");
}

// ---- a lookup that becomes exact ------------------------------------------------------------------------------------

/// Ten keys that are orthogonal, and every key once as the query: the weights become the identity matrix.
void show_lookup(const std::string& out) {
  constexpr std::size_t n = 10;
  const Tensor keys = reshape(eye(n), {1, 1, n, n});
  const Tensor values = square(arange(n));
  show("\nTen keys, each once as the query; the value of key i is i^2. Scores are the products, times a sharpness:");
  show("  sharpness   weight of the equal key   answer to query 7");
  examples::HeatMaps figure{"A soft lookup becomes an exact one", "weight", {}};
  Tensor answers;
  for (const int sharpness : {0, 3, 20}) {
    const AttentionOptions options{.scale = static_cast<Real>(sharpness)};
    const Tensor weights = reshape(attention_weights(keys, keys, options), {n, n});
    expect_rows_of_one(weights);
    answers = matmul(weights, values);
    show(text("  %-12d%-26.6f%.4f", sharpness, static_cast<double>(weights.value()(7, 7)),
              static_cast<double>(answers.value()(7))));
    if (sharpness == 0) expect(largest_difference(answers, mean(values)) < 1e-4, "sharpness 0 is average pooling");
    figure.maps.push_back(examples::heat_map(text("sharpness %d", sharpness), "keys", "queries", weights));
  }
  expect(largest_difference(answers, values) < 1e-4, "a sharp lookup returns the value of the equal key");
  draw(figure, out + "/cues_lookup");
}

// ---- a kernel that narrows ------------------------------------------------------------------------------------------

/// Noisy points of a curve, sorted by x, and what is asked: the curve between them.
struct Problem {
  Tensor keys, values;
  Tensor queries, truth;
};

Problem make_problem(Rng& rng, bool quick) {
  constexpr std::size_t points = 30;
  const Tensor keys = sort(rng.uniform({points}, 0, 5));
  const Tensor queries = arange(0, 5, Real(quick ? 0.25 : 0.1));
  const auto on_curve = [](const Tensor& x) { return Real(2) * sin(x) + pow(x, Real(0.8)); };
  const Tensor noise = rng.normal({points}, 0, 0.3);
  return {keys, on_curve(keys) + noise, queries, on_curve(queries)};
}

/// What a kernel of one width does.
struct Pooled {
  Tensor weights;      // (queries, keys)
  Tensor predictions;  // (queries)
  Numbers entropies;   // of each query's weights, in nats: log of how many keys count
  double entropy;      // their mean
  double error;        // root mean squared, to the curve without noise
};

Pooled pool(const Problem& problem, double width) {
  Pooled pooled;
  pooled.weights = nn::kernel_attention(problem.queries, problem.keys, nn::Kernel::gaussian, width);
  pooled.predictions = matmul(pooled.weights, problem.values);
  const Tensor terms = where(pooled.weights > 0, pooled.weights * log(pooled.weights), Tensor(0));
  pooled.entropies = to_numbers(Real(0) - sum(terms, 1));
  pooled.entropy = (0 - sum(terms).item()) / static_cast<double>(problem.queries.size());
  pooled.error = std::sqrt(mse_loss(pooled.predictions, problem.truth).item());
  return pooled;
}

/// Every prediction is the value of the key nearest to its query; of keys within 1e-4 of it, any mixture.
bool is_nearest_neighbour(const Problem& problem, const Tensor& predictions) {
  const Tensor distances = abs(unsqueeze(problem.queries, 1) - problem.keys);
  const Mask near = distances < amin(distances, 1, true) + Real(1e-4);
  const Tensor lowest = amin(where(near, problem.values, Tensor(INFINITY)), 1);
  const Tensor highest = amax(where(near, problem.values, Tensor(-INFINITY)), 1);
  const Mask within = predictions > lowest - Real(1e-4) && predictions < highest + Real(1e-4);
  return count_true(within) == predictions.size();
}

examples::Panel panel_of(const Problem& problem, const Pooled& pooled, const std::string& title) {
  using examples::Mark;
  const Numbers queries = to_numbers(problem.queries);
  return {title,
          "x",
          "y",
          {{"keys and values", to_numbers(problem.keys), to_numbers(problem.values), Mark::points, 2},
           {"truth", queries, to_numbers(problem.truth), Mark::line, 1},
           {"prediction", queries, to_numbers(pooled.predictions), Mark::line, 0}},
          {}};
}

/// Each row in parts of its largest weight, so that a wide kernel's small weights are seen too.
examples::HeatMap map_of(const Problem& problem, const Pooled& pooled, const std::string& title) {
  examples::HeatMap map = examples::heat_map(title, "keys", "queries", pooled.weights / amax(pooled.weights, 1, true));
  for (const double x : to_numbers(problem.queries)) map.row_ticks.push_back(text("%.1f", x));
  for (const double x : to_numbers(problem.keys)) map.column_ticks.push_back(text("%.1f", x));
  return map;
}

void show_widths(const Problem& problem, const std::string& out) {
  const Numbers widths = {1000, 1, 0.5, 0.2, 0.05, 1e-5};
  show(text("\n%zu queries against %zu noisy points, by a Gaussian kernel of the distance. As it narrows:",
            problem.queries.size(), problem.keys.size()));
  show("  width      entropy   keys that count   error to the truth");
  examples::HeatMaps maps{"Attention weights as the kernel narrows", "weight / largest of its row", {}};
  examples::Figure curves{"Predictions as the kernel narrows", {}};
  curves.same_ranges = true;
  std::vector<Pooled> all;
  for (const double width : widths) {
    const std::string title = text("width %g", width);
    const Pooled pooled = pool(problem, width);
    show(text("  %-10g %-9.4f %-17.2f %.4f", width, pooled.entropy, std::exp(pooled.entropy), pooled.error));
    expect_rows_of_one(pooled.weights);
    for (std::size_t i = 0; !all.empty() && i < pooled.entropies.size(); ++i) {
      expect(pooled.entropies[i] < all.back().entropies[i] + 1e-5, "every query's entropy falls as the kernel narrows");
    }
    expect(all.empty() || pooled.entropy < all.back().entropy, "entropy falls as the kernel narrows");
    maps.maps.push_back(map_of(problem, pooled, title));
    curves.panels.push_back(panel_of(problem, pooled, title));
    all.push_back(pooled);
  }
  const double from_average = largest_difference(all.front().predictions, mean(problem.values));
  expect(from_average < 1e-3, "the widest kernel gives average pooling, within 0.001");
  show(text("The widest is average pooling: %.4f for every query, within %.0e.", mean(problem.values).item(),
            from_average));
  expect(is_nearest_neighbour(problem, all.back().predictions), "the narrowest gives the nearest neighbour's value");
  show("The narrowest gives every query the value of its nearest key.");
  draw(maps, out + "/cues_widths");
  draw(curves, out + "/cues_curves");
}

void show_sweep(const Problem& problem, const std::string& out) {
  examples::Panel count{"e to the entropy", "kernel width", "keys that count", {{"", {}, {}}}, {}, true};
  examples::Panel error{"how good the curve is", "kernel width", "error to the truth", {{"", {}, {}}}, {}, true};
  Numbers errors;
  for (int tenth = 20; tenth >= -30; --tenth) {
    const double width = std::pow(10, tenth / 10.0);
    const Pooled pooled = pool(problem, width);
    errors.push_back(pooled.error);
    count.series[0].x.push_back(width);
    count.series[0].y.push_back(std::exp(pooled.entropy));
    error.series[0].x.push_back(width);
    error.series[0].y.push_back(pooled.error);
  }
  const auto best = std::min_element(errors.begin(), errors.end());
  expect(*best < errors.front() && *best < errors.back(), "the best width is neither the widest nor the narrowest");
  show(text("Widths from 100 to 0.001: the best is %.2g, with error %.4f; the ends have %.4f and %.4f.",
            error.series[0].x[static_cast<std::size_t>(best - errors.begin())], *best, errors.front(), errors.back()));
  draw(examples::Figure{"Neither the average nor the nearest neighbour", {count, error}}, out + "/cues_sweep");
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run(
      argc, argv, "attention_cues",
      "Attention as a soft lookup: cues, queries, keys and values, and what happens as the kernel narrows.",
      [](CLI::App&) {},
      [](const examples::Common& common) {
        examples::prepare_output_folder(common.out);
        Rng rng(common.seed);
        const Problem problem = make_problem(rng, common.quick);
        show_cues(common.out);
        show_lookup(common.out);
        show_widths(problem, common.out);
        show_sweep(problem, common.out);
      });
}
