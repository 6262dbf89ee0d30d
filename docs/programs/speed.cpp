// Where the speed comes from, measured piece by piece: the tape, fusing, row kernels, and attention without its matrix.
// It says what it finds and checks values only: times depend on the machine and on what else it does.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::expect, examples::show, examples::text;

namespace {

// [measure]
/// Seconds of a call: the least of several, since whatever else runs only adds.
template <class F>
double seconds(const F& f, int times = 7) {
  double least = INFINITY;
  for (int i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

/// Forward and backward of the sum of f(x).
template <class F>
double both_ways(const F& f, const Tensor& x) {
  const Parameter p(x.detach());
  return seconds([&] {
    Tape tape;
    tape.gradient(sum(f(p)), {p});
  });
}
// [/measure]

// [tape]
void show_tape() {
  const Parameter x(Tensor(1));
  const int ops = 10000;
  const double taken = seconds([&] {
    Tape tape;
    Tensor y = x;
    for (int i = 0; i < ops / 2; ++i) y = y * Real(0.999) + Real(0.001);
    tape.gradient(y, {x});
  });
  show(text("a scalar op, recorded and run backwards: %.0f ns", 1e9 * taken / ops));
}
// [/tape]

// [fused]
/// x sigmoid(x) of two ops, and of one.
Tensor composed(const Tensor& x) { return x * sigmoid(x); }

void show_fusing(Rng& rng) {
  const Tensor x = rng.normal({1024, 1024});
  expect(examples::largest_difference(composed(x), silu(x)) < 1e-5, "both are the same function");
  show(text("x sigmoid(x) of a million numbers, both ways: two ops %.2f ms, one op %.2f ms",
            1e3 * both_ways(composed, x), 1e3 * both_ways([](const Tensor& t) { return silu(t); }, x)));
}
// [/fused]

// [rows]
/// A softmax of four ops, as the formula has it.
Tensor by_formula(const Tensor& x) {
  const Tensor e = exp(x - amax(x, 1, true));
  return e / sum(e, 1, true);
}

void show_rows(Rng& rng) {
  const Tensor x = rng.normal({4096, 256});
  expect(examples::largest_difference(by_formula(x), softmax(x, 1)) < 1e-6, "both are the same function");
  show(text("softmax of 4096 rows of 256, both ways: by formula %.2f ms, by rows %.2f ms",
            1e3 * both_ways(by_formula, x), 1e3 * both_ways([](const Tensor& t) { return softmax(t, 1); }, x)));
}
// [/rows]

// [attention]
/// Causal attention as the formula has it: holds the scores (1,T,T), and their softmax.
Tensor with_matrix(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor scores = bmm(q, k, Transpose::no, Transpose::yes) * static_cast<Real>(1 / std::sqrt(64.0));
  return bmm(masked_softmax(scores, causal(q.extent(1))), v);
}

void show_attention(Rng& rng) {
  examples::Panel panel{"", "positions T", "milliseconds", {}, {}, true, true};
  panel.series = {{"with the matrix of scores", {}, {}, examples::Mark::line_points},
                  {"a few rows at a time", {}, {}, examples::Mark::line_points}};
  show("causal self-attention, 64 wide, both ways:");
  show("      T   with its matrix   a few rows at a time   the matrix alone");
  for (const std::size_t n : {128, 256, 512, 1024, 2048}) {
    const Tensor x = rng.normal({1, n, 64});
    const auto plain = [](const Tensor& t) { return with_matrix(t, t, t); };
    const auto fused = [](const Tensor& t) {
      return scaled_dot_product_attention(t, t, t, {.causal = true, .heads = 1});
    };
    expect(examples::largest_difference(plain(x), fused(x)) < 1e-4, "both are the same function");
    const double times[2] = {1e3 * both_ways(plain, x), 1e3 * both_ways(fused, x)};
    show(text("  %5zu %14.2f ms %19.2f ms %14.1f MiB", n, times[0], times[1],
              static_cast<double>(n * n * sizeof(Real)) / 1048576));
    for (std::size_t i = 0; i < 2; ++i) {
      panel.series[i].x.push_back(static_cast<double>(n));
      panel.series[i].y.push_back(times[i]);
    }
  }
  examples::save(examples::Figure{"Causal self-attention, forward and backward", {panel}}, "speed_attention");
}
// [/attention]

}  // namespace

int main() {
  set_threads(1);
  Rng rng(0);
  show_tape();
  show_fusing(rng);
  show_rows(rng);
  show_attention(rng);
}
