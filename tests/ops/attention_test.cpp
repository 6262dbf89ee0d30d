// Alphabet: B batch, H heads, Q queries, K keys, D width of q and k, V width of v.
#include <cstring>
#include <optional>

#include "autograd/random.hpp"
#include "autograd/threads.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

// A number is no truth: a matrix of ones and zeros can't be taken for a mask, or added without a word.
static_assert(!std::is_convertible_v<Tensor, Mask> && !std::is_constructible_v<Mask, Tensor>);
static_assert(!std::is_convertible_v<Array, Mask> && !std::is_convertible_v<Tensor, std::optional<Mask>>);

namespace {

Mask random_mask(const Shape& shape, Rng& rng, double p = 0.6) {
  Mask mask(shape);
  for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = rng.uniform() < p;
  return mask;
}

/// 0 where true, -inf elsewhere.
Tensor additive_of(const Mask& mask) {
  Array numbers = empty_array(mask.shape());
  std::transform(mask.begin(), mask.end(), numbers.data(), [](auto keep) { return keep ? Real(0) : -kInf; });
  return numbers;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.value().data(), b.value().data(), a.size() * sizeof(Real)) == 0;
}

/// softmax over the last axis among the kept scores, by the definition, in long double.
Array plain_masked_softmax(const Array& scores, const Mask& mask) {
  const Mask full = mask || Mask(scores.shape());
  Array y = scores;
  const std::size_t n = scores.shape().back();
  for (std::size_t row = 0; row < y.size(); row += n) {
    long double top = -std::numeric_limits<long double>::infinity();
    for (std::size_t i = row; i < row + n; ++i) {
      if (full.data()[i]) top = std::max<long double>(top, scores.data()[i]);
    }
    long double total = 0;
    for (std::size_t i = row; i < row + n; ++i) {
      if (full.data()[i]) total += std::exp(scores.data()[i] - top);
    }
    for (std::size_t i = row; i < row + n; ++i) {
      y.data()[i] = full.data()[i] ? static_cast<Real>(std::exp(scores.data()[i] - top) / total) : Real(0);
    }
  }
  return y;
}

Tensor split(const Tensor& x, std::size_t heads) {
  if (heads == 0) return x;
  return permute(reshape(x, Shape{x.extent(0), x.extent(1), heads, x.extent(2) / heads}), {0, 2, 1, 3});
}

/// Attention composed of plain ops, as its equation has it.
Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  const Tensor queries = split(q, options.heads);
  const Tensor keys = split(k, options.heads);
  const double width = static_cast<double>(queries.extent(3));
  Tensor scores =
      matmul(queries, transpose(keys, 2, 3)) * options.scale.value_or(static_cast<Real>(1 / std::sqrt(width)));
  if (options.additive_mask.defined()) scores += options.additive_mask;
  Mask mask = options.mask.value_or(Mask{true});
  if (options.causal) mask = mask && causal(scores.extent(2), scores.extent(3));
  const Tensor y = matmul(masked_softmax(scores, mask), split(v, options.heads));
  return options.heads ? reshape(permute(y, {0, 2, 1, 3}), Shape{q.extent(0), q.extent(1), v.extent(2)}) : y;
}

struct Sizes {
  std::size_t B, H, Q, K, D, V;
};

/// Random q, k and v, the heads in the rows or not.
std::vector<Tensor> operands(const Sizes& s, bool in_rows, Rng& rng) {
  if (in_rows)
    return {rng.normal({s.B, s.Q, s.H * s.D}), rng.normal({s.B, s.K, s.H * s.D}), rng.normal({s.B, s.K, s.H * s.V})};
  return {rng.normal({s.B, s.H, s.Q, s.D}), rng.normal({s.B, s.H, s.K, s.D}), rng.normal({s.B, s.H, s.K, s.V})};
}

/// q, k, v and perhaps the additive mask -> attention.
Function attention_of(const AttentionOptions& options) {
  return [options](const std::vector<Tensor>& x) {
    AttentionOptions own = options;
    if (x.size() > 3) own.additive_mask = x[3];
    return scaled_dot_product_attention(x[0], x[1], x[2], own);
  };
}

/// The fused op's value and gradients, first and recorded, are the composed formula's.
void check_fused(std::vector<Tensor> inputs, AttentionOptions options, Rng& rng) {
  if (options.additive_mask.defined()) inputs.push_back(options.additive_mask);
  const Function fused = attention_of(options);
  const Function plain = [options](const std::vector<Tensor>& x) {
    AttentionOptions own = options;
    if (x.size() > 3) own.additive_mask = x[3];
    return composed(x[0], x[1], x[2], own);
  };
  const double tolerance = kDouble ? 1e-13 : 1e-5;
  const Tensor y = plain(inputs);
  check_close(fused(inputs), y, tolerance);
  const Tensor dy = rng.normal(y.shape());
  const std::vector<Tensor> expected = gradients_of(plain, inputs, dy);
  const std::vector<Tensor> got = gradients_of(fused, inputs, dy);
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    check_close(got[i], expected[i], 10 * tolerance);
  }
}

}  // namespace

TEST_CASE("Masks that attention takes: causal, lengths of keys, padding, and all of them together") {
  const auto is = [](const Mask& mask, const Shape& shape, const std::vector<int>& elements) {
    return mask.shape() == shape && std::equal(mask.begin(), mask.end(), elements.begin(), elements.end());
  };
  CHECK(is(causal(3), {3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1}));
  CHECK(is(causal(2, 3), {2, 3}, {1, 0, 0, 1, 1, 0}));
  CHECK(is(causal(3, 2), {3, 2}, {1, 0, 1, 1, 1, 1}));
  CHECK(is(causal(0, 2), {0, 2}, {}));
  CHECK(is(valid_lengths(Index{2, 0, 3}, 3), {3, 1, 3}, {1, 1, 0, 0, 0, 0, 1, 1, 1}));
  CHECK(is(valid_lengths(Index{{1, 2}, {0, 2}}, 2), {2, 2, 2}, {1, 0, 1, 1, 0, 0, 1, 1}));
  CHECK(is(padding(Index{{5, 7, 0}, {0, 7, 5}}, 0), {2, 1, 3}, {1, 1, 0, 0, 1, 1}));
  CHECK(is(padding(Index{{5, 7, 0}, {0, 7, 5}}, 0) && causal(3), {2, 3, 3},
           {1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1}));
  CHECK(every_head(valid_lengths(Index{2, 1}, 3)).shape() == Shape{2, 1, 1, 3});
  check_refused([] { valid_lengths(Index{4}, 3); }, "[valid_lengths] a length must be from 0 to the number of keys");
  check_refused([] { valid_lengths(Index{-1}, 3); }, "[valid_lengths] a length must be from 0 to the number of keys");
  check_refused([] { valid_lengths(Index(Shape{1, 1, 1}), 3); }, "[valid_lengths] lengths must be (B) or (B,Q)");
  check_refused([] { padding(Index{1, 2}, 0); }, "[padding] the keys must be (B,K)");
  check_refused([] { every_head(causal(3)); }, "[every_head] the mask must be (B,Q,K)");
}

TEST_CASE("masked_softmax is the definition for every row length and every way that the mask broadcasts") {
  Rng rng(1);
  for (std::size_t n : {1, 2, 7, 8, 9, 16, 17, 33}) {
    for (const Shape& shape :
         {Shape{2, 3, n}, Shape{1, 3, n}, Shape{2, 1, n}, Shape{2, 3, 1}, Shape{3, n}, Shape{n}, Shape{}}) {
      const Tensor scores(rng.normal({2, 3, n}, 0, 4));
      Mask mask = random_mask(shape, rng);
      mask.data()[0] = 1;
      const Array expected = plain_masked_softmax(scores.value(), mask);
      Array safe = expected;  // rows without a key are 0/0 in the definition
      for (Real& y : safe.storage()) y = y != y ? Real(0) : y;
      check_close(masked_softmax(scores, mask).value(), safe, kDouble ? 1e-15 : 1e-6);
    }
  }
}

TEST_CASE("masked_softmax's masked weights are exactly 0 whatever the scores, and its input stays as it is") {
  const Tensor scores{{{Real(-2e6), 5, kInf, kNaN}, {1, 1e30, -kInf, 3}}};
  const Tensor before = scores.detach();
  const Tensor y = masked_softmax(scores, Mask({{true, false, false, false}, {true, false, false, true}}));
  check_close(y, Tensor{{{1, 0, 0, 0}, {1 / (1 + std::exp(2.0)), 0, 0, 1 / (1 + std::exp(-2.0))}}});
  CHECK(same_bits(scores, before));
  for (Real weight : {y.value()(0, 0, 1), y.value()(0, 0, 2), y.value()(0, 0, 3), y.value()(0, 1, 1)})
    CHECK(weight == 0);
  const Tensor dx = gradient_of(
      [](const Tensor& x) {
        return masked_softmax(x, Mask({{true, false, false, false}, {true, false, false, true}}));
      },
      scores, Tensor{{{1, kNaN, 2, 3}, {4, kInf, 5, 6}}});
  for (Real number : dx.value().storage()) CHECK(std::isfinite(number));
  CHECK(dx.value()(0, 0, 1) == 0);
  CHECK(dx.value()(0, 1, 1) == 0);
}

TEST_CASE("A valid length of 0 attends to nothing: zeros, zero gradients, and an input that is not written to") {
  const Tensor scores{{{1, 2, 3, 4}}};
  check_close(masked_softmax(scores, Index{0}), Tensor{{{0, 0, 0, 0}}}, 0);
  CHECK(same_bits(scores, Tensor{{{1, 2, 3, 4}}}));
  check_close(gradient_of([](const Tensor& x) { return masked_softmax(x, Index{0}); }, scores, Tensor{{{1, 2, 3, 4}}}),
              zeros({1, 1, 4}), 0);
}

TEST_CASE("masked_softmax takes lengths for each item or for each query, and refuses what does not fit") {
  const Tensor scores = zeros({2, 2, 4});
  const Real third = Real(1) / 3;
  check_close(masked_softmax(scores, Index{1, 2}),
              Tensor{{{1, 0, 0, 0}, {1, 0, 0, 0}}, {{0.5, 0.5, 0, 0}, {0.5, 0.5, 0, 0}}});
  check_close(masked_softmax(scores, Index{{1, 3}, {2, 4}}),
              Tensor{{{1, 0, 0, 0}, {third, third, third, 0}}, {{0.5, 0.5, 0, 0}, {0.25, 0.25, 0.25, 0.25}}});
  check_refused([&] { masked_softmax(scores, Index{1}); }, "scores must be (B,Q,K) and the lengths (B) or (B,Q)");
  check_refused([&] { masked_softmax(scores, Index{1, 5}); }, "a length must be from 0 to the number of keys");
  check_refused([&] { masked_softmax(scores, Mask(Shape{3, 4})); }, "the mask must broadcast to the scores");
  check_refused([&] { masked_softmax(scores, Mask(Shape{1, 2, 2, 4})); }, "the mask must broadcast to the scores");
}

TEST_CASE("masked_softmax's gradients of first and second order, rows without a key among them") {
  Rng rng(2);
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 1, 1}, Shape{0, 2, 3}, Shape{2, 3, 0}}) {
    const Mask mask = random_mask(shape, rng, 0.5);
    check_gradients([&](const std::vector<Tensor>& x) { return masked_softmax(x[0], mask); }, {rng.normal(shape)});
  }
  check_gradients(
      [](const std::vector<Tensor>& x) {
        return masked_softmax(x[0], Index{{0, 3}, {1, 2}});
      },
      {rng.normal({2, 2, 3})});
}

TEST_CASE("Fused attention is the composed formula, value and gradients, at every size and in both layouts") {
  Rng rng(3);
  for (const Sizes& s : {Sizes{2, 3, 5, 7, 4, 3},
                         {1, 1, 1, 1, 1, 1},
                         {1, 2, 3, 1, 5, 2},
                         {2, 1, 4, 4, 1, 9},
                         {0, 2, 3, 4, 5, 6},
                         {2, 2, 0, 3, 4, 5},
                         {2, 2, 3, 0, 4, 5},
                         {1, 2, 3, 4, 2, 0},
                         {2, 2, 64, 65, 3, 5},
                         {1, 3, 65, 64, 8, 4},
                         {2, 1, 130, 70, 5, 7},
                         {1, 2, 63, 200, 16, 16}}) {
    for (bool in_rows : {false, true}) {
      for (bool is_causal : {false, true}) {
        CAPTURE(s.B, s.H, s.Q, s.K, s.D, s.V, in_rows, is_causal);
        AttentionOptions options{.causal = is_causal, .heads = in_rows ? s.H : 0};
        const std::vector<Tensor> qkv = operands(s, in_rows, rng);
        check_fused(qkv, options, rng);
        options.scale = Real(0.7);
        options.mask = random_mask({s.B, s.H, s.Q, s.K}, rng);
        check_fused(qkv, options, rng);
        options.additive_mask = rng.normal({1, s.H, s.Q, s.K});
        check_fused(qkv, options, rng);
      }
    }
  }
}

TEST_CASE("Masks of both kinds broadcast to the scores over every combination of axes") {
  Rng rng(4);
  const Sizes s{2, 3, 66, 5, 3, 2};
  const std::vector<Tensor> qkv = operands(s, true, rng);
  for (unsigned full = 0; full < 16; ++full) {
    const Shape shape{full & 8 ? s.B : 1, full & 4 ? s.H : 1, full & 2 ? s.Q : 1, full & 1 ? s.K : 1};
    const std::size_t leading = static_cast<std::size_t>(
        std::find_if(shape.begin(), shape.end(), [](std::size_t n) { return n != 1; }) - shape.begin());
    for (std::size_t drop = 0; drop <= leading; ++drop) {
      if (drop == 1) continue;  // three axes are refused
      const Shape fewer(shape.begin() + static_cast<std::ptrdiff_t>(drop), shape.end());
      CAPTURE(to_text(fewer));
      check_fused(qkv, {.mask = random_mask(fewer, rng), .heads = s.H}, rng);
      check_fused(qkv, {.additive_mask = rng.normal(fewer), .causal = full % 2 == 0, .heads = s.H}, rng);
    }
  }
}

TEST_CASE("One query that may attend to nothing gets zeros and leaves every gradient finite") {
  const Tensor q{{{{1, 2}, {3, 4}}}};
  const Tensor k{{{{1, 0}, {0, 1}}}};
  const Tensor v{{{{5, 6}, {7, 8}}}};
  const Mask mask({{false, false}, {true, false}});
  const Function f = attention_of({.mask = mask});
  check_close(f({q, k, v}), Tensor{{{{0, 0}, {5, 6}}}}, 0);
  check_close(attention_weights(q, k, {.mask = mask}), Tensor{{{{0, 0}, {1, 0}}}}, 0);
  const std::vector<Tensor> gradients = gradients_of(f, {q, k, v});
  check_close(gradients[0], zeros(q.shape()), 0);
  check_close(gradients[1], zeros(k.shape()), 0);
  check_close(gradients[2], Tensor{{{{1, 1}, {0, 0}}}}, 0);
}

TEST_CASE("A boolean mask and an additive one of -inf are the same attention") {
  Rng rng(5);
  const Sizes s{2, 2, 70, 9, 4, 3};
  const std::vector<Tensor> qkv = operands(s, false, rng);
  for (const Mask& mask : {random_mask({2, 2, 70, 9}, rng, 0.3), causal(70, 9), random_mask({2, 1, 1, 9}, rng)}) {
    const AttentionOptions with_bools{.mask = mask};
    const AttentionOptions with_numbers{.additive_mask = additive_of(mask)};
    check_close(attention_of(with_bools)(qkv), attention_of(with_numbers)(qkv));
    const std::vector<Tensor> a = gradients_of(attention_of(with_bools), qkv);
    const std::vector<Tensor> b = gradients_of(attention_of(with_numbers), qkv);
    for (std::size_t i = 0; i < 3; ++i) check_close(a[i], b[i]);
  }
  CHECK(same_bits(attention_of({.causal = true})(qkv), attention_of({.mask = causal(70, 9)})(qkv)));
}

TEST_CASE("NaN and infinities reach the queries that attend to them, and no other") {
  Rng rng(6);
  const Sizes s{1, 2, 5, 4, 3, 2};
  const Mask mask({{true, true, true, false},
                   {true, false, true, false},
                   {true, true, true, false},
                   {false, false, true, false},
                   {false, false, false, false}});
  const auto is_row_nan = [](const Tensor& y, std::size_t i) { return y.value()(0, 0, i, 0) != y.value()(0, 0, i, 0); };
  for (Real special : {kNaN, kInf}) {
    std::vector<Tensor> qkv = operands(s, false, rng);
    qkv[0].mutable_value()(0, 0, 1, 2) = kNaN;
    Tensor y = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {.mask = mask});
    for (std::size_t i = 0; i < 5; ++i) CHECK(is_row_nan(y, i) == (i == 1));

    qkv = operands(s, false, rng);
    for (std::size_t i = 0; i < 5; ++i) qkv[0].mutable_value()(0, 0, i, 0) = 1;
    qkv[1].mutable_value()(0, 0, 1, 0) = special;  // a key: scores of NaN or inf
    qkv[1].mutable_value()(0, 0, 3, 0) = special;  // one that nobody attends to
    y = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {.mask = mask});
    for (std::size_t i = 0; i < 5; ++i) CHECK(is_row_nan(y, i) == (i == 0 || i == 2));
    check_close(y, composed(qkv[0], qkv[1], qkv[2], {.mask = mask}), kDouble ? 1e-13 : 1e-5);
  }
  std::vector<Tensor> qkv = operands(s, false, rng);
  qkv[1].mutable_value().fill(Real(0));
  qkv[0].mutable_value().fill(std::numeric_limits<Real>::max());  // scores of 0, whatever the queries
  check_close(scaled_dot_product_attention(qkv[0], qkv[1], qkv[2]), broadcast_to(mean(qkv[2], 2, true), {1, 2, 5, 2}),
              kDouble ? 1e-14 : 1e-6);
}

TEST_CASE("A row of NaN scores gives NaN weights, not those of a row that may attend to nothing") {
  for (std::size_t n : {1, 3, 8, 16, 19, 64}) {
    const Tensor nans = full({1, 1, n}, kNaN);
    const Tensor weights = masked_softmax(nans, Mask{true});
    for (Real weight : weights.value().storage()) CHECK(std::isnan(weight));
    const Tensor y = scaled_dot_product_attention(full({1, 1, 1, 2}, kNaN), ones({1, 1, n, 2}), ones({1, 1, n, 2}));
    for (Real average : y.value().storage()) CHECK(std::isnan(average));
  }
}

TEST_CASE("Scores far apart neither overflow nor vanish in attention") {
  const Tensor q{{{{1000}, {-1000}}}};
  const Tensor k{{{{50}, {-50}, {49}}}};
  const Tensor v{{{{1}, {2}, {3}}}};
  check_close(scaled_dot_product_attention(q, k, v), Tensor{{{{1}, {2}}}}, 0);
}

TEST_CASE("Attention's gradients of first and second order") {
  Rng rng(7);
  for (const Sizes& s :
       {Sizes{2, 2, 3, 5, 3, 2}, {1, 1, 1, 1, 1, 1}, {1, 1, 4, 1, 3, 2}, {0, 2, 3, 4, 5, 6}, {1, 1, 67, 3, 2, 1}}) {
    for (bool in_rows : {false, true}) {
      CAPTURE(s.B, s.H, s.Q, s.K, s.D, s.V, in_rows);
      AttentionOptions options{.heads = in_rows ? s.H : 0};
      std::vector<Tensor> inputs = operands(s, in_rows, rng);
      check_gradients(attention_of(options), inputs);
      options.causal = true;
      options.mask = random_mask({s.B, 1, s.Q, s.K}, rng);
      check_gradients(attention_of(options), inputs);
      inputs.push_back(rng.normal({1, s.H, 1, s.K}));
      check_gradients(attention_of(options), inputs);
    }
  }
  check_gradients(
      [](const std::vector<Tensor>& x) { return attention_weights(x[0], x[1], {.causal = true, .heads = 2}); },
      {rng.normal({2, 3, 6}), rng.normal({2, 4, 6})});
}

TEST_CASE("Heads are split from rows and joined again") {
  const Tensor x = reshape(arange(12), {1, 2, 6});
  const Tensor heads{{{{0, 1}, {6, 7}}, {{2, 3}, {8, 9}}, {{4, 5}, {10, 11}}}};
  check_close(split_heads(x, 3), heads, 0);
  check_close(join_heads(heads), x, 0);
  check_gradients([](const std::vector<Tensor>& v) { return square(split_heads(v[0], 3)); }, {x});
  check_gradients([](const std::vector<Tensor>& v) { return square(join_heads(v[0])); }, {heads});
  check_refused([&] { split_heads(x, 4); }, "[split_heads] x must be (B,T,H*D), with H the number of heads; got");
  check_refused([&] { split_heads(x, 0); }, "[split_heads]");
  check_refused([&] { split_heads(heads, 2); }, "[split_heads]");
  check_refused([&] { join_heads(x); }, "[join_heads] x must be (B,H,T,D)");
}

TEST_CASE("A mask of three axes is refused where its batch could be taken for heads") {
  Rng rng(9);
  const Mask lengths = valid_lengths(Index{2, 5, 1}, 5);  // (3,1,5), with as many heads as batch items
  const std::vector<Tensor> qkv = operands({3, 3, 4, 5, 2, 2}, true, rng);
  const AttentionOptions three{.mask = lengths, .heads = 3};
  const AttentionOptions three_numbers{.additive_mask = zeros({3, 1, 5}), .heads = 3};
  check_refused([&] { scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], three); },
                "[scaled_dot_product_attention] a mask of three axes is (B,Q,K): say every_head(mask); got (3,1,5) and "
                "(3,3,4,5)");
  check_refused([&] { attention_weights(qkv[0], qkv[1], three); },
                "[attention_weights] a mask of three axes is (B,Q,K): say every_head(mask)");
  check_refused([&] { scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], three_numbers); },
                "[scaled_dot_product_attention] an additive mask of three axes is (B,Q,K): say unsqueeze(mask, 1)");
  check_refused([&] { attention_weights(qkv[0], qkv[1], three_numbers); },
                "[attention_weights] an additive mask of three axes is (B,Q,K)");
  const std::vector<Tensor> one = operands({1, 1, 4, 5, 2, 2}, true, rng);
  check_close(attention_weights(one[0], one[1], {.mask = valid_lengths(Index{2}, 5), .heads = 1}),
              attention_weights(one[0], one[1], {.mask = every_head(valid_lengths(Index{2}, 5)), .heads = 1}), 0);
}

TEST_CASE("attention_weights refuses in its own name, and masks too") {
  const Tensor q = zeros({2, 3, 4, 5});
  check_refused([&] { attention_weights(q, zeros({2, 3, 4})); }, "[attention_weights] q, k and v must be");
  check_refused(
      [&] {
        attention_weights(q, q, {.mask = Mask(Shape{7, 4})});
      },
      "[attention_weights] the mask must broadcast to (B,H,Q,K); got (7,4) and (2,3,4,4)");
  check_refused(
      [&] {
        attention_weights(q, q, {.additive_mask = zeros({5, 1, 1, 1, 1})});
      },
      "[attention_weights] the mask must broadcast to (B,H,Q,K)");
}

TEST_CASE("attention_weights are what attention averages with") {
  Rng rng(8);
  const std::vector<Tensor> qkv = operands({2, 3, 4, 5, 2, 3}, true, rng);
  const AttentionOptions options{.mask = every_head(valid_lengths(Index{2, 5}, 5)), .heads = 3};
  const Tensor weights = attention_weights(qkv[0], qkv[1], options);
  CHECK(weights.shape() == Shape{2, 3, 4, 5});
  check_close(sum(weights, 3), ones({2, 3, 4}));
  const Tensor average = permute(matmul(weights, split(qkv[2], 3)), {0, 2, 1, 3});
  check_close(reshape(average, Shape{2, 4, 9}), scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], options));
}

TEST_CASE("Attention refuses what does not fit, in one line") {
  const Tensor x = zeros({2, 3, 4});
  const Tensor y = zeros({2, 2, 3, 4});
  const auto refused = [](const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                          const char* rule) {
    check_refused([&] { scaled_dot_product_attention(q, k, v, options); },
                  std::string("[scaled_dot_product_attention] ") + rule);
  };
  refused(x, x, x, {}, "q, k and v must be (B,H,T,D), or (B,T,H*D) when the number of heads is given; got (2,3,4)");
  refused(y, y, y, {.heads = 2}, "q, k and v must be");
  refused(x, x, x, {.heads = 3}, "the widths must be divisible by the number of heads");
  refused(y, y, zeros({3, 2, 3, 4}), {}, "the batches of q, k and v must be equal");
  refused(y, zeros({2, 1, 3, 4}), y, {}, "q, k and v must have equally many heads");
  refused(y, zeros({2, 2, 3, 5}), y, {}, "q and k must be equally wide");
  refused(y, y, zeros({2, 2, 4, 4}), {}, "there must be a value for each key");
  refused(y, y, y, {.mask = Mask(Shape{4, 3})}, "the mask must broadcast to (B,H,Q,K); got (4,3) and (2,2,3,3)");
  refused(y, y, y, {.additive_mask = zeros({2, 2, 2, 3, 3})}, "the mask must broadcast to (B,H,Q,K)");
}

TEST_CASE("Attention's bits do not depend on the number of threads", "[threads]") {
  Rng rng(9);
  const Sizes s{3, 5, 150, 140, 16, 16};
  const std::vector<Tensor> qkv = operands(s, true, rng);
  const Tensor dy = rng.normal({3, 150, 80});
  const int before = threads();
  std::vector<Tensor> results[2];
  for (int count : {1, 2}) {
    set_threads(count);
    const AttentionOptions options{
        .mask = every_head(valid_lengths(Index{100, 140, 7}, 140)), .causal = true, .heads = 5};
    results[count - 1] = gradients_of(attention_of(options), qkv, dy);
    results[count - 1].push_back(attention_of(options)(qkv));
  }
  set_threads(before);
  for (std::size_t i = 0; i < 4; ++i) CHECK(same_bits(results[0][i], results[1][i]));
}

TEST_CASE("At 8192 positions and 8 heads of 64, attention holds less than 100 MiB beside its operands") {
  if (kDouble) return;  // programs are built with float
  const std::size_t T = 8192;
  Rng rng(10);
  std::vector<Tensor> qkv;
  for (int i = 0; i < 3; ++i) qkv.push_back(Tensor(rng.uniform({1, T, 512}, -1, 1)).set_requires_grad());
  const double operand = static_cast<double>(T * 512 * sizeof(Real));
  if (pooled_bytes() == 0) return;  // the pool is compiled out, and counts nothing
  release_pooled_memory();
  const std::size_t before = pooled_bytes();
  Tape tape;
  const Tensor y = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {.heads = 8});
  tape.backward(y, {.seed = Tensor(Array(y.shape(), Real(1)))});
  // The pool gives nothing back by itself, so this is the peak. Left out: y, dy, dq, dk and dv.
  const double more = static_cast<double>(pooled_bytes() - before) - 5 * operand;
  CAPTURE(more / (1 << 20));
  CHECK(more > 0);
  CHECK(more < 100.0 * (1 << 20));
  CHECK(qkv[0].has_grad());
}

TEST_CASE("Attention over no positions is done at once, however large the batch") {
  const std::size_t huge = std::size_t{1} << 40;
  const Tensor x = zeros({huge, 1, 0, 2});
  CHECK(scaled_dot_product_attention(x, x, x).shape() == Shape{huge, 1, 0, 2});
  CHECK(gradient_of([](const Tensor& v) { return scaled_dot_product_attention(v, v, v); }, x).shape() == x.shape());
}

TEST_CASE("Attention of no width weighs all keys alike") {
  const Tensor q = zeros({1, 1, 2, 0});
  const Tensor v(Array(Shape{1, 1, 2, 1}, Real(3)));
  check_close(scaled_dot_product_attention(q, q, v), v);
  check_close(attention_weights(q, q), full({1, 1, 2, 2}, Real(0.5)));
}
