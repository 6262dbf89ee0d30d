/// GRU: a recurrent layer with gates (Cho et al., 2014), in the variant that cuDNN and PyTorch compute.
#pragma once

#include "autograd/random.hpp"
#include "nn/module.hpp"

namespace TAPEGRAD::nn {

/// One layer of gated recurrent units. With x the input at a step and h the state before it, each gate being H rows of
/// the weights, in the order r, z, n:
///
///   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)       how much of the state the candidate sees
///   z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)       how much of the state stays
///   n = tanh(W_in x + b_in + r (W_hn h + b_hn))      the candidate
///   h' = (1 - z) n + z h
///
/// Names and layouts of the parameters are those of PyTorch's GRU with one layer and batch_first.
class GRU : public Module {
 public:
  /// The parameters start uniform on +-1/sqrt(hidden). Refuses an extent of 0.
  GRU(std::size_t inputs, std::size_t hidden, Rng& rng);

  struct Result {
    Tensor outputs;  ///< (B,T,hidden): the state after each step
    Tensor state;    ///< (B,hidden): the last one. PyTorch's has an axis of extent 1, the layer, in front
  };

  /// x (B,T,inputs) with T at least 1, and the state before the first step (B,hidden), zeros when left out. The state
  /// of one call is what the next takes to go on with the sequence.
  Result operator()(const Tensor& x, const Tensor& state = {});

  Parameter weight_ih_l0;  ///< (3 hidden,inputs)
  Parameter weight_hh_l0;  ///< (3 hidden,hidden)
  Parameter bias_ih_l0;    ///< (3 hidden)
  Parameter bias_hh_l0;    ///< (3 hidden)
};

}  // namespace TAPEGRAD::nn
