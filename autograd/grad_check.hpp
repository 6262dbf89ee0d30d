/// Gradient checks: what a rule says against what differences of the function say. In the double library only.
///
///   GradCheckReport report = grad_check([](const std::vector<Tensor>& x) { return x[0] * sin(x[1]); }, {a, b});
///   if (!report) std::cerr << report.message << '\n';
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/tensor.hpp"

namespace TAPEGRAD {

/// What is checked: a Tensor of any shape, made by ops from the inputs. It must give the same output whenever it is
/// called with the same inputs. Constants are captured.
using Function = std::function<Tensor(const std::vector<Tensor>&)>;

struct GradCheckOptions {
  /// How far an element x is moved, times max(1, |x|). Where numbers disagree, the next five smaller powers of ten of
  /// it are tried as well, so that steep functions and near kinks raise no false alarm.
  double step = 1e-3;
  /// Two numbers agree when they differ by at most `relative` times the larger of them ...
  double relative = 1e-6;
  /// ... plus `absolute` times the largest element of the input's gradient, plus what rounding of f's output explains.
  double absolute = 1e-10;
  /// Inputs of at most this many elements are checked element by element, larger ones along random directions.
  std::size_t largest_by_element = 1000;
  std::size_t directions = 8;
  /// Of the random numbers: the output's gradient, and the directions.
  std::uint64_t seed = 0;
};

struct GradCheckReport {
  bool passed = true;
  /// One line: that all agree, or which input, which element, both numbers.
  std::string message;
  explicit operator bool() const { return passed; }
};

/// Compares the gradient of f with respect to every input against differences of f (central, of fourth order). The
/// output gets a random gradient whose elements all differ. Inputs are copied, and no `.grad` is touched; a tape that
/// is open meanwhile sees nothing of it. Errors of 0.1 % in one element are found in inputs that are checked by element
/// (unless 10^7 times smaller than the largest), errors of 0.1 % in all elements at any size. Inputs should be away
/// from kinks. Refuses to work in float, without inputs, or with an undefined one.
GradCheckReport grad_check(const Function& f, const std::vector<Tensor>& inputs, const GradCheckOptions& options = {});

/// The same for second derivatives: the gradient that `create_graph` records is differentiated, with respect to the
/// inputs and to the gradient it began with, and compared against differences of the first gradient.
GradCheckReport grad_grad_check(const Function& f, const std::vector<Tensor>& inputs,
                                const GradCheckOptions& options = {});

}  // namespace TAPEGRAD
