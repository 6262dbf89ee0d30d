// Tape::gradient: gradients with respect to chosen Tensors, and passes that are recorded themselves.
#include <algorithm>

#include "autograd/named_scope.hpp"
#include "autograd/ops.hpp"
#include "autograd/tape.hpp"

namespace TAPEGRAD {

std::vector<Step*> Tape::sources_of(const Tensor& x) {
  require(x.requires_grad(), "gradient", "each x must require grad", x.shape());
  const Cell& cell = x.cell();
  if (!cell.leaf) {
    require(cell.tape == id_, "gradient", "each x must be a leaf or on this tape", x.shape());
    return {cell.step};
  }
  std::vector<Step*> sources;  // more than one where another tape used the leaf in between
  for (Step* step : leaves_) {
    if (step->leaf()->same_as(x)) sources.push_back(step);
  }
  return sources;
}

/// Marks the steps between the sources and the end as wanted, and no others.
void Tape::want_only(const std::vector<std::vector<Step*>>& sources) {
  for (Step* step : steps_) step->wanted = false;
  for (const auto& steps : sources) {
    for (Step* step : steps) step->wanted = step->retained = true;
  }
  std::vector<OperandInfo> operands;
  for (Step* step : steps_) {
    operands.clear();
    step->describe(operands);
    step->runs = std::any_of(operands.begin(), operands.end(), [](const OperandInfo& operand) {
      return operand.source != nullptr && operand.source->wanted;
    });
    step->wanted |= step->runs;
  }
}

std::vector<Tensor> Tape::gradient(const Tensor& y, const std::vector<Tensor>& xs, const BackwardOptions& options) {
  Step* last = last_step(y, "gradient", options);
  std::vector<std::vector<Step*>> sources;
  for (const Tensor& x : xs) sources.push_back(sources_of(x));
  const Tensor seed = seed_of(y, options);
  const bool keep = options.keep || options.create_graph;
  std::vector<Tensor> recorded;
  std::vector<Tensor> result;
  try {
    want_only(sources);
    if (options.create_graph) {
      recorded = run_recorded(last, seed);
    } else if (last->wanted) {
      run(last, seed, keep);
    }
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const auto twin = std::find_if(xs.begin(), xs.end(), [&](const Tensor& x) { return x.same_as(xs[i]); });
      const auto first = static_cast<std::size_t>(twin - xs.begin());
      if (first < i) {  // its gradient has been moved away
        result.push_back(options.create_graph ? result[first] : Tensor(Array(result[first].value())));
        continue;
      }
      Tensor sum;
      for (Step* step : sources[i]) {
        Tensor term;
        if (options.create_graph) {
          if (step->index < recorded.size()) term = recorded[step->index];
        } else if (step->adjoint != nullptr) {
          term = Tensor(std::move(*step->adjoint));
        }
        if (term.defined()) sum = sum.defined() ? sum + term : term;
      }
      result.push_back(sum.defined() ? sum : Tensor(Array(xs[i].shape(), Real(0))));
    }
  } catch (...) {
    want_all();
    if (!keep) restart();
    throw;
  }
  want_all();
  if (!keep) restart();
  return result;
}

std::vector<Tensor> Tape::run_recorded(Step* last, const Tensor& seed) {
  const Busy busy(busy_);
  const NamedScope name("backward");
  std::vector<Tensor> gradients(last->index + std::size_t{1});
  gradients[last->index] = seed;
  for (std::size_t i = gradients.size(); i-- > 0;) {
    Step* step = steps_[i];
    if (!gradients[i].defined() || !step->runs) continue;
    const Tensor dy = gradients[i];
    running = step->name;
    step->backward(dy, gradients);
    if (!step->retained) gradients[i] = Tensor();
  }
  return gradients;
}

}  // namespace TAPEGRAD
