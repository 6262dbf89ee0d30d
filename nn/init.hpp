/// First values for parameters: each function overwrites a Parameter in place.
///
///   for (auto& [name, parameter] : model.named_parameters()) {
///     if (parameter.rank() > 1) nn::init::xavier_uniform(parameter, rng);
///   }
///
/// Formulas, fans and gains are those that PyTorch documents for torch.nn.init; the random numbers are the Rng's.
#pragma once

#include "autograd/random.hpp"
#include "autograd/tensor.hpp"

namespace TAPEGRAD::nn::init {

void constant(Parameter parameter, Real value);
void uniform(Parameter parameter, Rng& rng, double low = 0, double high = 1);  ///< on [low, high)
void normal(Parameter parameter, Rng& rng, double mean = 0, double deviation = 1);

/// How many inputs and outputs meet in each element of a weight (out,in,...); further axes count for both.
struct Fans {
  std::size_t in, out;
};
/// Refuses fewer than two axes.
Fans fans(const Shape& weight);

enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };
/// What the deviation is multiplied by, so that signals keep their size through the nonlinearity: 1, 1, 5/3, sqrt(2),
/// sqrt(2 / (1 + slope^2)), 3/4. The slope is leaky_relu's.
double gain(Nonlinearity nonlinearity, double slope = 0.01);

/// Deviation gain sqrt(2 / (in + out)), uniform or normal (Glorot and Bengio, 2010). Refuses fewer than two axes.
void xavier_uniform(Parameter weight, Rng& rng, double gain = 1);
void xavier_normal(Parameter weight, Rng& rng, double gain = 1);

enum class Fan { in, out };
/// Deviation gain / sqrt(fan), uniform or normal (He et al., 2015); the gain is relu's unless given. Refuses fewer than
/// two axes.
void kaiming_uniform(Parameter weight, Rng& rng, double gain = init::gain(Nonlinearity::relu), Fan fan = Fan::in);
void kaiming_normal(Parameter weight, Rng& rng, double gain = init::gain(Nonlinearity::relu), Fan fan = Fan::in);

}  // namespace TAPEGRAD::nn::init
