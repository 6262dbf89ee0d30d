/// Clipping of gradients, between backward and the optimiser's step.
#pragma once

#include <vector>

#include "autograd/tensor.hpp"

namespace TAPEGRAD::optim {

/// Where the norm of all the parameters' gradients together, |g| = sqrt(sum of g^2), is above `max_norm`, multiplies
/// them by max_norm / |g|. Returns |g| as it was before, computed in double; 0 when no parameter has a gradient.
///
/// A norm that is infinite or NaN is returned as such, and the gradients stay as they are: scaled, they would be zeros
/// and NaN. Such a step is best left out:
///
///   if (std::isfinite(optim::clip_grad_norm(net.parameters(), 1))) optimizer.step();
///
/// PyTorch divides by |g| + 1e-6 instead, so that its clipped norm is a little below max_norm. A parameter that is
/// listed twice counts once. Refuses a max_norm that is negative or NaN.
double clip_grad_norm(const std::vector<Parameter>& parameters, double max_norm);

/// Moves every element of the gradients into [-limit, limit]. NaN stays. Refuses a limit that is negative or NaN.
void clip_grad_value(const std::vector<Parameter>& parameters, double limit);

}  // namespace TAPEGRAD::optim
