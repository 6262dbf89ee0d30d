// The exercises of docs/walkthroughs about attention, answered; each page shows its own part of this file.
#include "tapegrad.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

namespace {

/// Rounding of a few hundred operations.
constexpr double kNear = kDouble ? 1e-10 : 1e-4;

/// The positions of x (B,T,E) in another order.
Tensor reordered(const Tensor& x, const Index& order) { return index_select(x, 1, order); }

// [4]
TEST_CASE("4.1: only differences of scores count") {
  Rng rng(0);
  const Tensor scores = rng.normal({3, 5});
  check_close(softmax(scores + Tensor{{1}, {-2}, {30}}, 1), softmax(scores, 1), kNear);
}

TEST_CASE("4.2: a prediction changes with a value as much as the value is attended to") {
  const Tensor keys{0, 1, 2.5}, query{0.8};
  const Parameter values(Tensor{3, -1, 2});
  const Tensor weights = nn::kernel_attention(query, keys, nn::Kernel::gaussian, 0.7);  // (1,3)
  Tape tape;
  const Tensor prediction = matmul(weights, values);
  check_close(tape.gradient(prediction, {values})[0], reshape(weights, {3}));
}

TEST_CASE("4.3: a prediction never leaves the range of the values") {
  Rng rng(0);
  const Tensor keys = rng.uniform({20}), values = rng.normal({20}), queries = rng.uniform({100}, -5, 5);
  for (const double width : {0.01, 0.1, 1.0, 10.0}) {
    const Tensor predictions = matmul(nn::kernel_attention(queries, keys, nn::Kernel::gaussian, width), values);
    CHECK(amax(predictions).item() <= amax(values).item() + 1e-5);
    CHECK(amin(predictions).item() >= amin(values).item() - 1e-5);
  }
}
// [/4]

// [5]
TEST_CASE("5.1: a large negative number is not a mask") {
  const auto by_number = [](const Tensor& scores, const Mask& mask) {
    return softmax(masked_fill(scores, !mask, Real(-1e6)), -1);
  };
  const Tensor scores{-1000010, 5};  // a score below the number: the masked key wins
  const Mask first{true, false};
  CHECK(by_number(scores, first).value()(1) > Real(0.99));
  CHECK(masked_softmax(scores, first).value()(1) == 0);
  const Mask none{false, false};  // nothing to attend to: everything gets attention
  CHECK(by_number(scores, none).value()(1) == Real(0.5));
  CHECK(masked_softmax(scores, none).value()(1) == 0);
}

TEST_CASE("5.2: the variance of a product of uniform vectors") {
  Rng rng(0);
  const std::size_t n = 20000, d = 16;
  const Tensor products = sum(Tensor(rng.uniform({n, d}, -1, 1)) * Tensor(rng.uniform({n, d}, -1, 1)), {1});
  const double each = 1 / 3.0;  // the variance of one element; its mean is 0
  CHECK(var(products).item() == Approx(static_cast<double>(d) * each * each).epsilon(0.05));
}

TEST_CASE("5.3: a bilinear score is a dot product with a mapped key") {
  Rng rng(0);
  const Tensor q = rng.normal({1, 2, 3}), k = rng.normal({1, 4, 5}), v = rng.normal({1, 4, 2}), w = rng.normal({3, 5});
  const auto attention = [&](const std::vector<Tensor>& xs) {
    return scaled_dot_product_attention(q, linear(k, xs[0]), v, {.scale = Real(1), .heads = 1});
  };
  const Tensor scores = matmul(matmul(q, w), k, Transpose::no, Transpose::yes);  // q^T W k
  check_close(attention({w}), matmul(softmax(scores, 2), v), kNear);
  check_gradients(attention, {w});
}
// [/5]

// [6]
TEST_CASE("6.1: heads divide the columns, so their number does not count") {
  Rng rng(0);
  for (const std::size_t heads : {1, 4, 8}) {
    const nn::MultiHeadAttention attention(64, heads, rng);
    CHECK(attention.parameter_count() == 4 * 64 * 64 + 4 * 64);  // four maps with biases
  }
}

TEST_CASE("6.2: keys and values are a set of pairs") {
  Rng rng(0);
  nn::MultiHeadAttention attention(8, 2, rng);
  const Tensor queries = rng.normal({2, 3, 8}), keys = rng.normal({2, 4, 8}), values = rng.normal({2, 4, 8});
  const Index order{2, 0, 3, 1};
  check_close(attention(queries, reordered(keys, order), reordered(values, order)), attention(queries, keys, values),
              kNear);
}

TEST_CASE("6.3: one head with identity maps is scaled dot-product attention") {
  Rng rng(0);
  nn::MultiHeadAttention attention(4, 1, rng, {.bias = false});
  attention.in_proj_weight.mutable_value() = concat({eye(4), eye(4), eye(4)}, 0).value();
  attention.out_proj.weight.mutable_value() = eye(4).value();
  const Tensor x = rng.normal({1, 5, 4});
  nn::DotProductAttention plain(0, rng);
  check_close(attention(x), plain(x, x, x), kNear);
}
// [/6]

// [7]
TEST_CASE("7.1: self-attention does not know the order of its input, a convolution does") {
  Rng rng(0);
  const Tensor x = rng.normal({1, 5, 8});
  const Index order{3, 1, 4, 0, 2};
  nn::MultiHeadAttention attention(8, 2, rng);
  check_close(attention(reordered(x, order)), reordered(attention(x), order), kNear);
  nn::Conv1d conv(8, 8, 3, rng, {.padding = 1});
  const auto convolve = [&](const Tensor& t) { return transpose(conv(transpose(t, 1, 2)), 1, 2); };
  const Tensor difference = convolve(reordered(x, order)) - reordered(convolve(x), order);
  CHECK(amax(abs(difference)).item() > 0.1);
}

TEST_CASE("7.2: how far stacked convolutions see") {
  Rng rng(0);
  const auto positions_seen = [&](std::ptrdiff_t stride) {
    nn::Conv1d first(1, 1, 3, rng, {.stride = stride}), second(1, 1, 3, rng);
    const Parameter x(rng.normal({1, 1, 40}));
    Tape tape;
    const Tensor one = sum(slice(second(first(x)), 2, 5, 6));  // an output in the middle
    return count_true(tape.gradient(one, {x})[0] != Tensor(0));
  };
  CHECK(positions_seen(1) == 5);
  CHECK(positions_seen(2) == 7);
}

TEST_CASE("7.3: an open update gate carries the gradient") {
  Rng rng(0);
  nn::GRU gru(2, 3, rng);
  Array& bias = gru.bias_ih_l0.mutable_value();  // the rows of r, z, n
  for (std::size_t i = 3; i < 6; ++i) bias(i) = 100;
  const Parameter state(rng.normal({1, 3}));
  Tape tape;
  const Tensor last = gru(rng.normal({1, 50, 2}), state).state;
  check_close(last, state.value(), kNear);
  check_close(tape.gradient(sum(last), {state})[0], ones({1, 3}), kNear);
}
// [/7]

// [8]
TEST_CASE("8.1: rotations add up") {
  check_close(matmul(nn::rotation(3, 8), nn::rotation(4.5, 8)), nn::rotation(7.5, 8), kNear);
}

TEST_CASE("8.2: with positions, order counts") {
  Rng rng(0);
  const Tensor x = rng.normal({1, 5, 8});
  const Index order{3, 1, 4, 0, 2};
  nn::MultiHeadAttention attention(8, 2, rng);
  nn::PositionalEncoding positions(8);
  const Tensor difference = attention(positions(reordered(x, order))) - reordered(attention(positions(x)), order);
  CHECK(amax(abs(difference)).item() > 0.01);
}

TEST_CASE("8.3: rotated queries and keys know only their distance") {
  Rng rng(0);
  const Tensor q = rng.normal({8}), k = rng.normal({8});
  const auto score = [&](double i, double j) {
    return sum(matmul(nn::rotation(i, 8), q) * matmul(nn::rotation(j, 8), k)).item();
  };
  CHECK(score(3, 10) == Approx(score(103, 110)).margin(1e-4));
  CHECK(std::abs(score(3, 10) - score(3, 11)) > 1e-3);
}
// [/8]

// [9]
TEST_CASE("9.1: a leak of the future is found") {
  Rng rng(0);
  nn::TransformerEncoderLayer layer({.width = 8, .heads = 2, .hidden = 16, .dropout = 0}, rng);
  const Tensor x = rng.normal({2, 5, 8});
  const nn::CausalityReport leaky = nn::check_causality([&](const Tensor& t) { return layer(t); }, x);
  CHECK(!leaky);
  CHECK(leaky.leaked < leaky.changed);
  CHECK(nn::check_causality([&](const Tensor& t) { return layer(t, {.causal = true}); }, x));
}

TEST_CASE("9.2: the parameters of a layer") {
  Rng rng(0);
  const std::size_t e = 16;
  const nn::TransformerEncoderLayer layer({.width = e, .heads = 2, .hidden = 4 * e}, rng);
  // four maps and two of the network; their biases; two norms with gain and bias
  const std::size_t weights = 4 * e * e + 2 * e * 4 * e, biases = 4 * e + 4 * e + e, norms = 4 * e;
  CHECK(layer.parameter_count() == weights + biases + norms);
  CHECK(layer.parameter_count() == 12 * e * e + 13 * e);
}

TEST_CASE("9.3: one position at a time") {
  Rng rng(0);
  nn::TransformerDecoder decoder({.width = 8, .heads = 2, .hidden = 16, .decoder_layers = 2, .dropout = 0}, rng);
  const Tensor x = rng.normal({1, 6, 8}), memory = rng.normal({1, 4, 8});
  std::vector<nn::DecoderCache> cache = decoder.start(memory);
  std::vector<Tensor> outputs;
  for (std::ptrdiff_t t = 0; t < 6; ++t) outputs.push_back(decoder(slice(x, 1, t, t + 1), cache));
  check_close(concat(outputs, 1), decoder(x, memory), kNear);
}
// [/9]

}  // namespace
