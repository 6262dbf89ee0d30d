// Three layers that turn a sequence of n vectors, d wide, into another one, and what each costs:
//
//                    multiply-adds   steps that wait for another   path from the first position to the last
//   CNN, k wide      k n d^2         1                             n/k layers
//   GRU              n d^2           n                             n steps
//   self-attention   n^2 d           1                             1
//
// Multiply-adds are counted by formula and time is measured; how they grow is fitted by least squares on the
// logarithms. Steps and paths are checked: what the tape recorded, and through how many layers a gradient gets. The
// program exits 1 where something is not so.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <memory>

#include "autograd/threads.hpp"
#include "examples/support/csv.hpp"
#include "examples/support/program.hpp"
#include "examples/support/show.hpp"
#include "nn/attention.hpp"
#include "nn/conv1d.hpp"
#include "nn/gru.hpp"

using namespace tapegrad;
using examples::draw, examples::expect, examples::show, examples::text;
using Numbers = std::vector<double>;

namespace {

constexpr std::size_t kKernel = 5;  // 2 neighbours on each side
constexpr std::size_t kLarge = 3;   // sizes, the largest, that the growth of time is fitted to
constexpr double kTolerance = 0.8;  // of its exponents: libraries are better at some sizes than at others

/// A layer of width d: x (1,n,d) -> (1,n,d).
using Layer = std::function<Tensor(const Tensor&)>;

struct Model {
  std::string name;
  std::function<Layer(std::size_t d, Rng& rng)> make;
  std::function<double(double n, double d)> multiply_adds;
  double by_length, by_width;  // the exponents of n and d that they have
};

/// Biases, gates and softmax are left out of the counts: they grow with n d, or with n^2 alone.
std::vector<Model> all_models() {
  const auto cnn = [](std::size_t d, Rng& rng) -> Layer {
    const auto padding = static_cast<std::ptrdiff_t>(kKernel / 2);
    auto conv = std::make_shared<nn::Conv1d>(d, d, kKernel, rng, nn::Conv1dOptions{.padding = padding});
    return [conv](const Tensor& x) { return transpose((*conv)(transpose(x, 1, 2)), 1, 2); };
  };
  const auto gru = [](std::size_t d, Rng& rng) -> Layer {
    auto cell = std::make_shared<nn::GRU>(d, d, rng);
    return [cell](const Tensor& x) { return (*cell)(x).outputs; };
  };
  const auto attention = [](std::size_t, Rng& rng) -> Layer {
    auto pool = std::make_shared<nn::DotProductAttention>(0.0, rng);
    return [pool](const Tensor& x) { return (*pool)(x, x, x); };
  };
  return {
      {"CNN", cnn, [](double n, double d) { return kKernel * n * d * d; }, 1, 2},
      {"GRU", gru, [](double n, double d) { return 6 * n * d * d; }, 1, 2},  // three gates, of input and of state
      {"self-attention", attention, [](double n, double d) { return 2 * n * n * d; }, 2, 1},  // scores and averages
  };
}

// ---- growth ---------------------------------------------------------------------------------------------------------

/// y = factor x^exponent.
struct Power {
  double exponent, factor;
  double operator()(double x) const { return factor * std::pow(x, exponent); }
};

/// The power that fits the last `count` points best: least squares on the logarithms.
Power fit(const Numbers& x, const Numbers& y, std::size_t count) {
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (std::size_t i = x.size() - count; i < x.size(); ++i) {
    mean_x += std::log(x[i]) / static_cast<double>(count);
    mean_y += std::log(y[i]) / static_cast<double>(count);
  }
  for (std::size_t i = x.size() - count; i < x.size(); ++i) {
    xx += (std::log(x[i]) - mean_x) * (std::log(x[i]) - mean_x);
    xy += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
  }
  return {xy / xx, std::exp(mean_y - xy / xx * mean_x)};
}

/// A row of sizes: either n grows or d does.
struct Sweep {
  std::string axis;
  std::vector<std::size_t> n, d;
  std::vector<Numbers> times;  // median seconds, [model][size]
  std::size_t size() const { return n.size(); }
  Numbers along() const { return axis == "n" ? Numbers(n.begin(), n.end()) : Numbers(d.begin(), d.end()); }
};

/// Seconds of the processor for one forward pass, without a tape: the mean of as many as take 2 milliseconds. What
/// other programs do meanwhile does not count.
double seconds(const Layer& layer, const Tensor& x) {
  const NoTape no_tape;
  const std::clock_t start = std::clock();
  for (int passes = 1;; ++passes) {
    layer(x);
    const double taken = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (taken > 2e-3) return taken / passes;
  }
}

/// Fills in the times: medians over rounds, each of which measures every size.
void measure(Sweep& sweep, const std::vector<Model>& models, std::size_t rounds, Rng& rng, bool quiet) {
  examples::Progress progress("measuring along " + sweep.axis, rounds * sweep.size(), quiet);
  std::vector<std::vector<Numbers>> all(models.size(), std::vector<Numbers>(sweep.size()));
  for (std::size_t step = 0; step < rounds * sweep.size(); ++step) {
    const std::size_t i = step % sweep.size();
    const Tensor x = rng.normal({1, sweep.n[i], sweep.d[i]});
    for (std::size_t m = 0; m < models.size(); ++m) {
      all[m][i].push_back(seconds(models[m].make(sweep.d[i], rng), x));
    }
    progress.update(step + 1);
  }
  for (std::vector<Numbers>& model : all) {
    sweep.times.emplace_back();
    for (Numbers& times : model) {
      std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
      sweep.times.back().push_back(times[times.size() / 2]);
    }
  }
}

/// Prints times, multiply-adds and how they grow, draws both on logarithmic axes, and checks the exponents, those of
/// time within the tolerance.
void compare_growth(const std::vector<Model>& models, const Sweep& sweep, double tolerance, examples::Figure& figure) {
  const bool by_n = sweep.axis == "n";
  const Numbers x = sweep.along();
  const std::string fixed = by_n ? text("d = %zu", sweep.d[0]) : text("n = %zu", sweep.n[0]);
  show(text("\nmilliseconds of one layer, %s", fixed.c_str()));
  std::string line = text("  %6s", sweep.axis.c_str());
  for (const Model& model : models) line += text("%16s", model.name.c_str());
  show(line);
  for (std::size_t i = 0; i < sweep.size(); ++i) {
    line = text("  %6.0f", x[i]);
    for (const Numbers& times : sweep.times) line += text("%16.3f", 1e3 * times[i]);
    show(line);
  }
  examples::Panel time{"time, " + fixed, sweep.axis, "milliseconds", {}, {}, true, true};
  examples::Panel count{"multiply-adds, " + fixed, sweep.axis, "millions", {}, {}, true, true};
  std::string counted = "  multiply-adds grow as", timed = "  time grows as        ";
  for (std::size_t m = 0; m < models.size(); ++m) {
    Numbers multiply_adds, millions, milliseconds, fitted;
    for (std::size_t i = 0; i < sweep.size(); ++i) {
      multiply_adds.push_back(
          models[m].multiply_adds(static_cast<double>(sweep.n[i]), static_cast<double>(sweep.d[i])));
      millions.push_back(1e-6 * multiply_adds.back());
    }
    const Power exact = fit(x, multiply_adds, sweep.size()), measured = fit(x, sweep.times[m], kLarge);
    for (std::size_t i = 0; i < sweep.size(); ++i) {
      milliseconds.push_back(1e3 * sweep.times[m][i]);
      fitted.push_back(1e3 * measured(x[i]));
    }
    const char* name = models[m].name.c_str();
    const char* axis = sweep.axis.c_str();
    const double claimed = by_n ? models[m].by_length : models[m].by_width;
    counted += text("  %s %s^%.2f", name, axis, exact.exponent);
    timed += text("  %s %s^%.2f", name, axis, measured.exponent);
    expect(std::abs(exact.exponent - claimed) < 1e-9, text("multiply-adds of %s grow as %s^%g", name, axis, claimed));
    expect(std::abs(measured.exponent - claimed) < tolerance,
           text("the time of %s grows as %s^%g: measured %.2f", name, axis, claimed, measured.exponent));
    const int style = static_cast<int>(m);
    time.series.push_back({"", x, milliseconds, examples::Mark::points, style});
    time.series.push_back({text("%s: %s^%.2f", name, axis, measured.exponent), x, fitted, examples::Mark::line, style});
    count.series.push_back({text("%s: %s^%g", name, axis, claimed), x, millions, examples::Mark::line_points, style});
  }
  show(counted);
  show(timed + text("  (the last %zu sizes)", kLarge));
  figure.panels.push_back(time);
  figure.panels.push_back(count);
}

// ---- steps and paths ------------------------------------------------------------------------------------------------

/// Ops that one pass records on a tape.
double tape_steps(const Layer& layer, std::size_t n, std::size_t d) {
  Tape tape;
  layer(Parameter(zeros({1, n, d})));
  return static_cast<double>(tape.size());
}

/// How many layers, one on the other, bring the first position to the last: until the gradient there is not 0.
double layers_to_reach(const Layer& layer, std::size_t n, std::size_t d, Rng& rng) {
  for (std::size_t count = 1;; ++count) {
    Parameter x(rng.normal({1, n, d}));
    Tape tape;
    Tensor y = x;
    for (std::size_t i = 0; i < count; ++i) y = layer(y);
    const auto last = static_cast<std::ptrdiff_t>(n) - 1;
    tape.backward(sum(slice(y, 1, last, last + 1)));
    const Real* first = x.grad().data();
    if (std::any_of(first, first + d, [](Real g) { return g != 0; })) return static_cast<double>(count);
  }
}

void compare_paths(const std::vector<Model>& models, Rng& rng, examples::Figure& figure) {
  constexpr std::size_t d = 8;
  const std::vector<std::size_t> lengths{5, 9, 17, 33, 65};
  examples::Panel steps{"steps that wait for another", "n", "steps", {}, {}, true, true};
  examples::Panel paths{"path from the first position to the last", "n", "steps or layers", {}, {}, true, true};
  show("\nwhat waits, and how far the first position is from the last (by tape and gradients)");
  show("                        n   ops on the tape   waiting steps   layers to reach   path");
  for (std::size_t m = 0; m < models.size(); ++m) {
    const bool recurrent = models[m].name == "GRU", convolution = models[m].name == "CNN";
    const Layer layer = models[m].make(d, rng);
    const double per_step = tape_steps(layer, 2, d) - tape_steps(layer, 1, d);
    const double once = tape_steps(layer, 1, d) - per_step;
    Numbers x, waiting, path;
    for (const std::size_t n : lengths) {
      const double ops = tape_steps(layer, n, d), layers = layers_to_reach(layer, n, d, rng);
      x.push_back(static_cast<double>(n));
      waiting.push_back(recurrent ? x.back() : 1);
      path.push_back(recurrent ? x.back() : layers);
      show(text("  %-16s %6zu %17.0f %15.0f %17.0f %6.0f", models[m].name.c_str(), n, ops, waiting.back(), layers,
                path.back()));
      expect(ops == once + per_step * x.back() && (per_step > 0) == recurrent,
             models[m].name + (recurrent ? " takes a step for each position" : " takes all positions at once"));
      expect(layers == (convolution ? std::ceil((x.back() - 1) / (kKernel / 2)) : 1),
             models[m].name + " reaches the last position as claimed");
    }
    const int style = static_cast<int>(m);
    const std::string at_once = convolution ? "CNN and self-attention" : models[m].name;
    if (convolution || recurrent) steps.series.push_back({at_once, x, waiting, examples::Mark::line_points, style});
    paths.series.push_back({models[m].name, x, path, examples::Mark::line_points, style});
  }
  figure.panels.push_back(steps);
  figure.panels.push_back(paths);
}

// ---- the job --------------------------------------------------------------------------------------------------------

void job(const examples::Common& common, bool any_time) {
  examples::prepare_output_folder(common.out);
  set_threads(1);  // several would be at work for large sizes only
  Rng rng(common.seed);
  const std::vector<Model> models = all_models();
  std::vector<std::size_t> lengths{64, 128, 256, 512, 1024, 2048, 4096}, widths{32, 64, 128, 256, 512, 1024};
  if (common.quick) lengths.pop_back();  // narrower layers would be too quick for their growth to show
  Sweep by_length{"n", lengths, std::vector<std::size_t>(lengths.size(), 64), {}};
  Sweep by_width{"d", std::vector<std::size_t>(widths.size(), 128), widths, {}};
  show(text("one layer on one sequence of n vectors, d wide; CNN %zu wide; one head of attention, without its maps",
            kKernel));
  show(text("multiply-adds: CNN %zu n d^2, GRU 6 n d^2, self-attention 2 n^2 d, least of all up to n = %g d", kKernel,
            kKernel / 2.0));
  show("times: of the processor, forward, one thread, medians");
  examples::Figure figure{"What a layer costs, by length n and width d", {}, 2};
  Numbers n, d;
  std::vector<Numbers> times(models.size());
  for (Sweep* sweep : {&by_length, &by_width}) {
    measure(*sweep, models, common.quick ? 3 : 9, rng, common.quiet);
    compare_growth(models, *sweep, any_time ? INFINITY : kTolerance, figure);
    n.insert(n.end(), sweep->n.begin(), sweep->n.end());
    d.insert(d.end(), sweep->d.begin(), sweep->d.end());
    for (std::size_t m = 0; m < models.size(); ++m) {
      times[m].insert(times[m].end(), sweep->times[m].begin(), sweep->times[m].end());
    }
  }
  compare_paths(models, rng, figure);
  show("");
  examples::write_csv(common.out + "/sequence_times.csv", {"n", "d", "cnn_s", "gru_s", "attention_s"},
                      {n, d, examples::rounded(times[0]), examples::rounded(times[1]), examples::rounded(times[2])});
  show("  " + common.out + "/sequence_times.csv");
  draw(figure, common.out + "/sequence_growth");
}

}  // namespace

int main(int argc, char** argv) {
  bool any_time = false;
  return examples::run(
      argc, argv, "sequence_models",
      "CNN, GRU and self-attention: time, multiply-adds, steps and paths, by length and width.",
      [&](CLI::App& app) {
        app.add_flag("--any-time", any_time,
                     "print how times grow without checking it: on a busy machine they don't grow as they should");
      },
      [&](const examples::Common& common) { job(common, any_time); });
}
