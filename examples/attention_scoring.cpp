// Scoring functions: where attention weights come from.
//
//   additive                   w_v . tanh(W_q query + W_k key)    queries and keys may differ in size (Bahdanau et al.)
//   scaled dot product         query . key / sqrt(d)              one matrix product (Vaswani et al.)
//
// Softmax turns scores into weights, a mask keeps it to the keys that are there. Then why the product is divided by
// sqrt(d): the variance of query . key is d, and with such scores softmax has hardly a gradient left to learn from.
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
using Numbers = std::vector<double>;

namespace {

/// The rows of all batches as one matrix, with each row's batch and number as its label.
examples::HeatMap map_of(const std::string& title, const Tensor& weights) {
  const std::size_t queries = weights.extent(1), keys = weights.extent(2);
  examples::HeatMap map = examples::heat_map(title, "keys", "batch, query", reshape(weights, {-1, keys}));
  for (std::size_t r = 0; r < map.rows; ++r) map.row_ticks.push_back(text("%zu, %zu", r / queries, r % queries));
  return map;
}

void show_rows(const Tensor& batches) {
  const examples::HeatMap map = map_of("", batches);
  for (std::size_t r = 0; r < map.rows; ++r) {
    const std::size_t queries = batches.extent(1);
    std::string line = text("    batch %zu, query %zu:", r / queries, r % queries);
    for (std::size_t c = 0; c < map.columns; ++c) line += text("%9.4f", map.values[r * map.columns + c]);
    show(line);
  }
}

// ---- masked softmax -------------------------------------------------------------------------------------------------

/// Weights are exactly 0 beyond the lengths; before them they are the softmax of the scores that are there.
void check_masked(const Tensor& scores, const Tensor& weights, const Index& lengths) {
  const std::size_t queries = scores.extent(1), keys = scores.extent(2);
  for (std::size_t r = 0; r < scores.extent(0) * queries; ++r) {
    const auto length = lengths.data()[lengths.rank() == 1 ? r / queries : r], row = static_cast<std::ptrdiff_t>(r);
    const auto part = [&](const Tensor& t, std::ptrdiff_t start, std::ptrdiff_t stop) {
      return slice(slice(reshape(t, {-1, keys}), 0, row, row + 1), 1, start, stop);
    };
    const auto end = static_cast<std::ptrdiff_t>(keys);
    expect(largest_difference(part(weights, 0, length), softmax(part(scores, 0, length), 1)) < 1e-6,
           "masked softmax is the softmax of what the mask keeps");
    expect(count_true(part(weights, length, end) != Tensor(0)) == 0, "masked weights are exactly 0");
  }
}

void show_masked_softmax(Rng& rng, const std::string& out) {
  const Tensor scores = rng.uniform({2, 2, 4});
  const Index per_batch{2, 3}, per_query{{1, 3}, {2, 4}};
  const Tensor by_batch = masked_softmax(scores, per_batch), by_query = masked_softmax(scores, per_query);
  show("Masked softmax of random scores (2,2,4). One valid length for each batch, (2,3):");
  show_rows(by_batch);
  show("  One for each query, ((1,3),(2,4)):");
  show_rows(by_query);
  check_masked(scores, by_batch, per_batch);
  check_masked(scores, by_query, per_query);
  draw(
      examples::HeatMaps{
          "Masked softmax", "weight", {map_of("lengths (2,3)", by_batch), map_of("lengths ((1,3),(2,4))", by_query)}},
      out + "/scoring_masked");
}

// ---- the two scoring functions --------------------------------------------------------------------------------------

/// Attention of two batches with one query and ten keys each, of which 2 and 6 are valid. Equal keys have equal scores,
/// whatever the scoring function, so the answer is the average of the first 2 and the first 6 values.
void show_attention(Rng& rng, const std::string& out) {
  const Tensor values = repeat(reshape(arange(40), {1, 10, 4}), {2, 1, 1});
  const Tensor equal_keys = ones({2, 10, 2}), random_keys = rng.normal({2, 10, 2}, 0, 2);
  const Tensor queries_of_20 = rng.normal({2, 1, 20}), queries_of_2 = rng.normal({2, 1, 2});
  const Mask valid = valid_lengths(Index{2, 6}, 10);
  const Tensor averages{{{2, 3, 4, 5}}, {{10, 11, 12, 13}}};
  examples::HeatMaps figure{"Attention to the first 2 and 6 of ten keys", "weight", {}, 2};

  nn::AdditiveAttention additive(20, 2, 8, rng, 0.1);
  nn::DotProductAttention dot_product(0.5, rng);
  const auto try_out = [&](auto& attention, const Tensor& queries, const std::string& name) {
    attention.eval();  // no dropout
    attention.keep_weights();
    const Tensor answer = attention(queries, equal_keys, values, valid);
    show("\n" + name + ", ten equal keys, valid lengths (2,6): the averages of the first 2 and 6 values");
    show_rows(answer);
    expect(largest_difference(answer, averages) < 1e-4, name + " averages the first 2 and 6 values");
    figure.maps.push_back(map_of(name + ", equal keys", attention.attention_weights()));
    const Tensor other = attention(queries, random_keys, values, valid);
    show("  with random keys, the averages are weighted:");
    show_rows(other);
    expect(largest_difference(other, averages) > 1e-5, "keys that differ change the average");
    check_masked(log(attention.attention_weights()), attention.attention_weights(), Index{2, 6});
    figure.maps.push_back(map_of(name + ", random keys", attention.attention_weights()));
  };
  try_out(additive, queries_of_20, "additive");
  try_out(dot_product, queries_of_2, "scaled dot product");
  draw(figure, out + "/scoring_attention");
}

// ---- why 1 / sqrt(d) ------------------------------------------------------------------------------------------------

/// The Jacobian of each row's softmax, d weight i / d score j, at scores (n,K): (n,K,K), by a backward pass for each i.
/// Rows don't depend on each other, so the gradient of the sum over rows has each row's own.
Tensor softmax_jacobian(Tensor scores) {
  scores.set_requires_grad();
  std::vector<Tensor> gradients;
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(scores.extent(1)); ++i) {
    Tape tape;
    gradients.push_back(tape.gradient(sum(slice(softmax(scores, 1), 1, i, i + 1)), {scores})[0]);
  }
  return stack(gradients, 1);
}

/// The largest element of the Jacobian, w_i (1 - w_i) or w_i w_j: of half of all rows it is less than this.
double median_gradient(const Tensor& scores) {
  const Tensor jacobian = softmax_jacobian(scores.detach()), weights = softmax(scores, 1);
  const Tensor formula = unsqueeze(weights, 1) * eye(scores.extent(1)) - unsqueeze(weights, 1) * unsqueeze(weights, 2);
  expect(largest_difference(jacobian, formula) < 1e-6, "softmax's Jacobian is diag(w) - w w^T");
  return sort(amax(abs(jacobian), {1, 2})).value()(scores.extent(0) / 2);
}

/// Scores of normal queries (n,d), each with K keys of its own, (n,K,d).
Tensor normal_scores(Rng& rng, std::size_t n, std::size_t keys, std::size_t d) {
  const Tensor queries = rng.normal({n, 1, d});
  return reshape(bmm(queries, rng.normal({n, keys, d}), Transpose::no, Transpose::yes), {n, keys});
}

void show_scaling(Rng& rng, bool quick, const std::string& out) {
  const std::size_t pairs = quick ? 2000 : 10000, rows = quick ? 101 : 501, keys = 10;
  examples::Panel variance{"variance of a score", "d", "variance", {}, {}, true, true};
  examples::Panel gradient{"largest element of softmax's Jacobian", "d", "median of queries", {}, {}, true, true};
  variance.series = {{"q . k", {}, {}, examples::Mark::line_points},
                     {"q . k / sqrt(d)", {}, {}, examples::Mark::line_points}};
  gradient.series = variance.series;
  show(text(
      "\nNormal queries and keys. Variance of %zu products, and the largest element of the Jacobian of softmax over",
      pairs));
  show(text("%zu keys (the median of %zu queries; it is at most 1/4):", keys, rows));
  show("           variance                       largest of the Jacobian");
  show("      d    q.k        q.k/sqrt(d)         q.k          q.k/sqrt(d)");
  for (std::size_t d = 1; d <= 1024; d *= 4) {
    const double width = static_cast<double>(d);
    const auto scale = static_cast<Real>(1 / std::sqrt(width));
    const Tensor products = normal_scores(rng, pairs, 1, d), scores = normal_scores(rng, rows, keys, d);
    const double variances[2] = {var(products).item(), var(products * scale).item()};
    const double gradients[2] = {median_gradient(scores), median_gradient(scores * scale)};
    show(text("  %5zu    %-10.4g %-20.4f%-12.3g %.4f", d, variances[0], variances[1], gradients[0], gradients[1]));
    for (std::size_t s = 0; s < 2; ++s) {
      variance.series[s].x.push_back(width);
      variance.series[s].y.push_back(variances[s]);
      gradient.series[s].x.push_back(width);
      gradient.series[s].y.push_back(gradients[s]);
    }
    // The estimate of a variance from n products has a relative standard deviation of sqrt((2 + 6/d) / n).
    const double tolerance = 6 * std::sqrt((2 + 6 / width) / static_cast<double>(pairs));
    expect(std::abs(variances[0] / width - 1) < tolerance, text("the variance of q . k is d = %zu", d));
    expect(std::abs(variances[1] - 1) < tolerance, text("the variance of q . k / sqrt(d) is 1 for d = %zu", d));
    expect(gradients[1] > 0.1 && gradients[1] <= 0.2501, text("the scaled scores keep a gradient at d = %zu", d));
  }
  const Numbers& unscaled = gradient.series[0].y;
  expect(unscaled.back() < 1e-2 * gradient.series[1].y.back(), "without the scaling the gradient vanishes");
  show(text("Without 1/sqrt(d), half of the queries have a gradient below %.1e at d = 1024; with it, %.2f.",
            unscaled.back(), gradient.series[1].y.back()));
  draw(examples::Figure{"Why attention divides by sqrt(d)", {variance, gradient}}, out + "/scoring_scaling");
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run(
      argc, argv, "attention_scoring",
      "Masked softmax, additive and scaled dot-product attention, and why the product is divided by sqrt(d).",
      [](CLI::App&) {},
      [](const examples::Common& common) {
        examples::prepare_output_folder(common.out);
        Rng rng(common.seed);
        show_masked_softmax(rng, common.out);
        show_attention(rng, common.out);
        show_scaling(rng, common.quick, common.out);
      });
}
