#include "nn/gru.hpp"

#include <cmath>

namespace TAPEGRAD::nn {

GRU::GRU(std::size_t inputs, std::size_t hidden, Rng& rng) {
  require(inputs > 0 && hidden > 0, "GRU", "inputs and hidden must be at least 1", inputs, hidden);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  weight_ih_l0 = param("weight_ih_l0", rng.uniform({3 * hidden, inputs}, -bound, bound));
  weight_hh_l0 = param("weight_hh_l0", rng.uniform({3 * hidden, hidden}, -bound, bound));
  bias_ih_l0 = param("bias_ih_l0", rng.uniform({3 * hidden}, -bound, bound));
  bias_hh_l0 = param("bias_hh_l0", rng.uniform({3 * hidden}, -bound, bound));
}

GRU::Result GRU::operator()(const Tensor& x, const Tensor& state) {
  const NamedScope name = named_scope();
  const std::size_t hidden = weight_hh_l0.extent(1);
  require(x.rank() == 3 && x.extent(1) >= 1 && x.extent(2) == weight_ih_l0.extent(1), "GRU",
          "x must be (batch,steps,inputs) with at least one step", x.shape(), weight_ih_l0.shape());
  require(!state.defined() || state.shape() == Shape{x.extent(0), hidden}, "GRU", "the state must be (batch,hidden)",
          state.defined() ? state.shape() : Shape(), x.shape(), hidden);
  const auto h = static_cast<std::ptrdiff_t>(hidden);
  const auto steps = static_cast<std::ptrdiff_t>(x.extent(1));
  const Tensor from_inputs = linear(x, weight_ih_l0, bias_ih_l0);  // (B,T,3H): no step has to wait for another
  Result result{{}, state.defined() ? state : zeros({x.extent(0), hidden})};
  std::vector<Tensor> states;
  for (std::ptrdiff_t t = 0; t < steps; ++t) {
    const Tensor from_input = squeeze(slice(from_inputs, 1, t, t + 1), 1);     // (B,3H)
    const Tensor from_state = linear(result.state, weight_hh_l0, bias_hh_l0);  // (B,3H)
    const Tensor gates = sigmoid(slice(from_input, 1, 0, 2 * h) + slice(from_state, 1, 0, 2 * h));
    const Tensor r = slice(gates, 1, 0, h);
    const Tensor z = slice(gates, 1, h, 2 * h);
    const Tensor n = tanh(slice(from_input, 1, 2 * h, 3 * h) + r * slice(from_state, 1, 2 * h, 3 * h));
    result.state = (1 - z) * n + z * result.state;
    states.push_back(result.state);
  }
  result.outputs = stack(states, 1);
  return result;
}

}  // namespace TAPEGRAD::nn
