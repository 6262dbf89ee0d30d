#include "benchmarks/workloads.hpp"

#include "benchmarks/language_model.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

using namespace tapegrad;

namespace benchmarks {
namespace {

using Operands = std::vector<Parameter>;

Parameter normal(Rng& rng, const Shape& shape, double deviation = 1) {
  return Parameter(Tensor(rng.normal(shape, 0, deviation)));
}

// ---- training -------------------------------------------------------------------------------------------------------

/// The parametric Nadaraya-Watson regressor: 50 points, leave-one-out, SGD with rate 0.5.
Call nw_step() {
  struct State {
    Rng rng{0};
    nn::NadarayaWatson model{49, rng};
    nn::MSELoss loss{Reduction::none};
    optim::SGD optimizer{model.parameters(), {.learning_rate = 0.5}};
    Tensor x, y, keys, values;
  };
  auto state = std::make_shared<State>();
  Rng& rng = state->rng;
  state->x = sort(Tensor(rng.uniform({50}, 0, 5)));
  state->y = sin(state->x) * 2 + pow(state->x, Real(0.8)) + Tensor(rng.normal({50}, 0, 0.5));
  state->keys = nn::leave_one_out(state->x);
  state->values = nn::leave_one_out(state->y);
  return [state] {
    state->optimizer.zero_grad();
    Tape tape;
    const Tensor loss = sum(state->loss(state->model(state->x, state->keys, state->values), state->y));
    tape.backward(loss);
    state->optimizer.step();
    return loss;
  };
}

/// Forward, backward, gradients clipped to norm 1, AdamW.
Call language_model_step(const Sizes& sizes) {
  auto state = std::make_shared<LanguageModelState>(sizes);
  return [state] {
    Tape tape;
    const Tensor loss = cross_entropy(state->net(state->tokens), state->next);
    tape.backward(loss);
    (void)optim::clip_grad_norm(state->parameters, 1);
    state->optimizer.step();
    state->optimizer.zero_grad();
    return loss;
  };
}

/// The forward pass alone.
Call language_model_forward(const Sizes& sizes) {
  auto state = std::make_shared<LanguageModelState>(sizes);
  return [state] { return state->net(state->tokens); };
}

// ---- single ops -----------------------------------------------------------------------------------------------------

/// f of the operands, of which the first has y's shape, then backward from a gradient of ones.
template <class F>
Call forward_and_backward(Operands operands, F f) {
  struct State {
    Operands operands;
    Tensor dy;
  };
  const Tensor dy = ones(operands[0].shape());
  auto state = std::make_shared<State>(State{std::move(operands), dy});
  return [state, f] {
    for (Parameter& operand : state->operands) operand.zero_grad();
    Tape tape;
    const Tensor y = f(state->operands);
    tape.backward(y, {.seed = state->dy});
    return y;
  };
}

/// A scalar through `ops` / 2 times z * 0.999 + 0.001, then backward.
Call scalar_ops(std::size_t ops) {
  Parameter start(Tensor(1));
  return [start, ops]() mutable {
    start.zero_grad();
    Tape tape;
    Tensor z = start;
    for (std::size_t i = 0; i < ops; i += 2) z = z * Real(0.999) + Real(0.001);
    tape.backward(z);
    return z;
  };
}

/// Multi-head self-attention, a key mask from valid lengths, summed; backward to the weights and the input.
Call multi_head_attention(std::size_t batch, std::size_t length, std::size_t width, std::size_t heads) {
  struct State {
    State(std::size_t width, std::size_t heads) : model(width, heads, rng, {.bias = false}) {}
    Rng rng{0};
    nn::MultiHeadAttention model;
    Operands operands = model.parameters();
    Index lengths;
  };
  auto state = std::make_shared<State>(width, heads);
  const Parameter x = normal(state->rng, {batch, length, width});
  state->operands.push_back(x);
  state->lengths = Index(Shape{batch});
  for (std::size_t i = 0; i < batch; ++i) {  // half of the keys, on average
    state->lengths.data()[i] = static_cast<std::int64_t>((2 * i + 1) * length / (2 * batch));
  }
  return [state, x, length] {
    for (Parameter& operand : state->operands) operand.zero_grad();
    Tape tape;
    const Tensor y = sum(state->model(x, {.mask = valid_lengths(state->lengths, length)}));
    tape.backward(y);
    return y;
  };
}

/// Scaled dot-product attention alone, without a mask; heads lie side by side in the width.
Call dot_product_attention(std::size_t batch, std::size_t length, std::size_t width, std::size_t heads) {
  Rng rng(0);
  const Shape shape{batch, length, width};
  return forward_and_backward({normal(rng, shape), normal(rng, shape), normal(rng, shape)}, [heads](const Operands& p) {
    return scaled_dot_product_attention(p[0], p[1], p[2], {.heads = heads});
  });
}

Call softmax_rows() {
  Rng rng(0);
  return forward_and_backward({normal(rng, {4096, 512})}, [](const Operands& p) { return softmax(p[0], 1); });
}

Call layer_norm_rows() {
  Rng rng(0);
  return forward_and_backward({normal(rng, {4096, 512}), normal(rng, {512}), normal(rng, {512})},
                              [](const Operands& p) { return layer_norm(p[0], {512}, p[1], p[2]); });
}

Call gelu_million() {
  Rng rng(0);
  return forward_and_backward({normal(rng, {1 << 20})}, [](const Operands& p) { return gelu(p[0]); });
}

Call add_row() {
  Rng rng(0);
  return forward_and_backward({normal(rng, {4096, 512}), normal(rng, {512})},
                              [](const Operands& p) { return p[0] + p[1]; });
}

Call linear_map() {
  Rng rng(0);
  return forward_and_backward({normal(rng, {2048, 512}), normal(rng, {512, 512})},
                              [](const Operands& p) { return linear(p[0], p[1]); });
}

Call batched_product() {
  Rng rng(0);
  return forward_and_backward({normal(rng, {64, 64, 64}), normal(rng, {64, 64, 64})},
                              [](const Operands& p) { return bmm(p[0], p[1]); });
}

Call product() {
  Rng rng(0);
  const Tensor a = rng.normal({1024, 1024}), b = rng.normal({1024, 1024});
  return [a, b] { return matmul(a, b); };
}

// ---- what only moves memory -----------------------------------------------------------------------------------------

Call copy() {
  const Tensor from = ones({4096, 512});
  Tensor to = zeros({4096, 512});
  return [from, to]() mutable {
    std::memcpy(to.mutable_value().data(), from.value().data(), from.size() * sizeof(Real));
    return to;
  };
}

/// A reduction without a tape.
template <class F>
Call reduction(F f) {
  Rng rng(0);
  const Tensor x = rng.normal({4096, 512});
  return [x, f] { return f(x); };
}

Call adamw() {
  struct State {
    Parameter p{ones({4096, 512})};
    optim::AdamW optimizer{{p}};
  };
  auto state = std::make_shared<State>();
  Tape().backward(state->p, {.seed = full({4096, 512}, Real(0.01))});
  return [state] {
    state->optimizer.step();
    return state->p;
  };
}

/// So many arrays of (4096,512).
constexpr double arrays(int n) { return n * 4096.0 * 512 * sizeof(Real); }

}  // namespace

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> table = {
      {"nw_step", "training step of the Nadaraya-Watson regressor on 50 points", nw_step, true},
      {"tiny_1000ops", "1000 scalar ops, and backward", [] { return scalar_ops(1000); }},
      {"mha_d2l", "multi-head attention, (batch, length, width, heads) = (2,4,100,5), and backward",
       [] { return multi_head_attention(2, 4, 100, 5); }},
      {"mha_mid", "the same at (32,64,256,8)", [] { return multi_head_attention(32, 64, 256, 8); }},
      {"mha_long", "the same at (4,512,512,8)", [] { return multi_head_attention(4, 512, 512, 8); }},
      {"gpt_cpu", "training step of a language model: batch 12, 64 tokens, 4 layers, 4 heads, width 128",
       [] { return language_model_step(kSmall); }, true},
      {"gpt_mid", "the same at batch 8, 256 tokens, 6 layers, 6 heads, width 384",
       [] { return language_model_step(kMiddle); }, true},
      {"gpt_cpu_fwd", "the forward pass of gpt_cpu", [] { return language_model_forward(kSmall); }},
      {"gpt_mid_fwd", "the forward pass of gpt_mid", [] { return language_model_forward(kMiddle); }},
      {"softmax_4096x512", "softmax of rows, and backward", softmax_rows},
      {"layernorm_4096x512", "layer norm with weight and bias, and backward", layer_norm_rows},
      {"gelu_1M", "exact gelu of 2^20 numbers, and backward", gelu_million},
      {"add_bcast_4096x512", "a row added to each row of a matrix, and backward", add_row},
      {"linear_2048x512x512", "a linear map without bias, and backward", linear_map},
      {"bmm_64x64x64x64", "64 products of 64 x 64 matrices, and backward", batched_product},
      {"gemm_1024", "a product of 1024 x 1024 matrices", product},
  };
  return table;
}

std::optional<Workload> sized_workload(const std::string& name) {
  const std::size_t colon = std::min(name.find(':'), name.size() - 1);
  std::vector<std::size_t> n;
  std::istringstream numbers(name.substr(colon + 1));
  for (std::string number; std::getline(numbers, number, ',');) n.push_back(std::strtoull(number.c_str(), nullptr, 10));
  const auto is = [&](const char* kind, std::size_t count) {
    return name.substr(0, colon) == kind && n.size() == count;
  };
  const auto workload = [&](std::function<Call()> make) { return Workload{name, "", std::move(make)}; };
  if (is("attention", 4)) return workload([n] { return dot_product_attention(n[0], n[1], n[2], n[3]); });
  if (is("gpt", 5)) return workload([n] { return language_model_step({n[0], n[1], n[2], n[3], n[4]}); });
  if (is("ops", 1)) return workload([n] { return scalar_ops(n[0]); });
  return {};
}

const std::vector<Workload>& bandwidth_workloads() {
  static const std::vector<Workload> table = {
      {"copy_4096x512", "memcpy", copy, false, arrays(2)},
      {"softmax_4096x512", "x, y; y, dy, dx", softmax_rows, false, arrays(5)},
      {"layernorm_4096x512", "x, y; x, dy, dx", layer_norm_rows, false, arrays(5)},
      {"gelu_1M", "x, y; x, dy, dx", gelu_million, false, 5.0 * (1 << 20) * sizeof(Real)},
      {"add_bcast_4096x512", "x, y; dy, dx", add_row, false, arrays(4)},
      {"sum_4096x512", "x", [] { return reduction([](const Tensor& x) { return sum(x); }); }, false, arrays(1)},
      {"sum_rows_4096x512", "x", [] { return reduction([](const Tensor& x) { return sum(x, {1}); }); }, false,
       arrays(1)},
      {"sum_columns_4096x512", "x", [] { return reduction([](const Tensor& x) { return sum(x, {0}); }); }, false,
       arrays(1)},
      {"amax_rows_4096x512", "x", [] { return reduction([](const Tensor& x) { return amax(x, {1}); }); }, false,
       arrays(1)},
      {"adamw_4096x512", "p, dp, m, v; p, m, v", adamw, false, arrays(7)},
  };
  return table;
}

}  // namespace benchmarks
