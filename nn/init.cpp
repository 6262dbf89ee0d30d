#include "nn/init.hpp"

#include <cmath>

namespace TAPEGRAD::nn::init {
namespace {

/// Uniform numbers of that deviation reach sqrt(3) times as far.
void uniform_of(Parameter& weight, Rng& rng, double deviation) {
  const double bound = std::sqrt(3.0) * deviation;
  uniform(weight, rng, -bound, bound);
}

double xavier_deviation(const Shape& weight, double gain) {
  const Fans f = fans(weight);
  return gain * std::sqrt(2 / static_cast<double>(f.in + f.out));
}

double kaiming_deviation(const Shape& weight, double gain, Fan fan) {
  const Fans f = fans(weight);
  return gain / std::sqrt(static_cast<double>(fan == Fan::in ? f.in : f.out));
}

}  // namespace

void constant(Parameter parameter, Real value) { parameter.mutable_value().fill(value); }

void uniform(Parameter parameter, Rng& rng, double low, double high) {
  parameter.mutable_value() = rng.uniform(parameter.shape(), low, high);
}

void normal(Parameter parameter, Rng& rng, double mean, double deviation) {
  parameter.mutable_value() = rng.normal(parameter.shape(), mean, deviation);
}

Fans fans(const Shape& weight) {
  require(weight.size() >= 2, "init", "a weight must have at least two axes", weight);
  std::size_t field = 1;
  for (std::size_t axis = 2; axis < weight.size(); ++axis) field *= weight[axis];
  return {weight[1] * field, weight[0] * field};
}

double gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::sqrt(2.0);
    case Nonlinearity::leaky_relu:
      return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu:
      return 0.75;
    default:
      return 1;
  }
}

void xavier_uniform(Parameter weight, Rng& rng, double gain) {
  uniform_of(weight, rng, xavier_deviation(weight.shape(), gain));
}
void xavier_normal(Parameter weight, Rng& rng, double gain) {
  normal(weight, rng, 0, xavier_deviation(weight.shape(), gain));
}
void kaiming_uniform(Parameter weight, Rng& rng, double gain, Fan fan) {
  uniform_of(weight, rng, kaiming_deviation(weight.shape(), gain, fan));
}
void kaiming_normal(Parameter weight, Rng& rng, double gain, Fan fan) {
  normal(weight, rng, 0, kaiming_deviation(weight.shape(), gain, fan));
}

}  // namespace TAPEGRAD::nn::init
