#include "nn/conv1d.hpp"

#include <cmath>

namespace TAPEGRAD::nn {

Conv1d::Conv1d(std::size_t channels, std::size_t outputs, std::size_t kernel, Rng& rng, const Conv1dOptions& options)
    : options_(options) {
  require(channels > 0 && outputs > 0 && kernel > 0, "Conv1d", "channels, outputs and kernel must be at least 1",
          to_text(channels) + " channels", to_text(outputs) + " outputs", "a kernel of " + to_text(kernel));
  require(options.stride >= 1 && options.padding >= 0, "Conv1d",
          "the stride must be at least 1 and the padding 0 or more", options.stride, options.padding);
  const double bound = 1 / std::sqrt(static_cast<double>(channels) * static_cast<double>(kernel));
  weight = param("weight", rng.uniform({outputs, channels, kernel}, -bound, bound));
  if (options.bias) bias = param("bias", rng.uniform({outputs}, -bound, bound));
}

Tensor Conv1d::operator()(const Tensor& x) {
  const NamedScope name = named_scope();
  return conv1d(x, weight, bias, options_.stride, options_.padding);
}

}  // namespace TAPEGRAD::nn
