#include "nn/linear.hpp"

#include <cmath>

namespace TAPEGRAD::nn {

Linear::Linear(std::size_t in, std::size_t out, Rng& rng, bool with_bias) {
  require(in > 0 && out > 0, "Linear", "the sizes must be positive", in, out);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  weight = param("weight", rng.uniform({out, in}, -bound, bound));
  if (with_bias) bias = param("bias", rng.uniform({out}, -bound, bound));
}

}  // namespace TAPEGRAD::nn
