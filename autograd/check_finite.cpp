#include <cmath>

#include "autograd/watch.hpp"

namespace TAPEGRAD {
namespace {

/// The place of the first NaN or infinity, the size where there is none.
std::size_t first_bad(const Array& array) {
  const Real* data = array.data();
  std::size_t i = 0;
  while (i < array.size() && std::isfinite(data[i])) ++i;
  return i;
}

/// "step 7 'log' in encoder.layers.0"
std::string place(const StepView& view, std::size_t index) {
  std::string text = "step ";
  text.append(std::to_string(index)).append(" '").append(view.op).append("'");
  for (std::size_t i = 0; i < view.names.size(); ++i) text.append(i == 0 ? " in " : ".").append(view.names[i].name);
  return text;
}

[[noreturn]] void refuse_bad(const Tape& tape, const Step& step, const Array& array, std::size_t at,
                             const std::string& what) {
  const StepView view = view_of(tape, step);
  std::string got = "y ";
  got.append(to_text(step.shape));
  for (std::size_t i = 0; i < view.operands.size(); ++i) {
    const StepView::Operand& x = view.operands[i];
    got.append(i == 0 ? " of x0 " : ", x" + std::to_string(i) + " ");
    if (x.source >= 0) {
      got.append("#").append(std::to_string(x.source)).append(" ").append(tape[std::size_t(x.source)].name);
    } else {
      got.append(x.kind);
    }
    got.append(" ").append(x.shape);
  }
  refuse("check_finite",
         place(view, step.index) + what + to_text(double(array.data()[at])) + " at element " + std::to_string(at), got);
}

}  // namespace

void CheckFinite::recorded(const Tape& tape, const Step& step, const Tensor& y) {
  const std::size_t at = first_bad(y.value());
  if (at < y.size()) refuse_bad(tape, step, y.value(), at, step.leaf() ? " holds " : " makes ");
}

/// The seed; every other gradient was looked at when a rule made it.
void CheckFinite::before_rule(const Tape& tape, const Step& step, const Array& dy) {
  const std::size_t at = first_bad(dy);
  if (at < dy.size()) refuse_bad(tape, step, dy, at, " gets the gradient ");
}

void CheckFinite::after_rule(const Tape& tape, const Step& step, const Array&) {
  std::vector<OperandInfo> operands;
  step.describe(operands);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Step* source = operands[i].source;
    if (source == nullptr || source->adjoint == nullptr) continue;
    const std::size_t at = first_bad(*source->adjoint);
    if (at == source->adjoint->size()) continue;
    refuse_bad(tape, step, *source->adjoint, at, " makes the gradient of x" + std::to_string(i) + " ");
  }
}

}  // namespace TAPEGRAD
