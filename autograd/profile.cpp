#include <algorithm>
#include <cstdio>
#include <ostream>

#include "autograd/watch.hpp"

namespace TAPEGRAD {

void Profile::opened(const Tape&) { last_ = Clock::now(); }

void Profile::recorded(const Tape&, const Step& step, const Tensor& y) {
  if (step.leaf() != nullptr) return;  // its time belongs to the op that uses it
  Row& row = rows_[step.name];
  row.forward += std::chrono::duration<double>(Clock::now() - last_).count();
  ++row.calls;
  row.output += y.size() * sizeof(Real);
  row.saved += step.saved_output_bytes();
  std::vector<OperandInfo> operands;
  step.describe(operands);
  for (const OperandInfo& operand : operands) row.saved += operand.saved;
  last_ = Clock::now();
}

void Profile::before_rule(const Tape&, const Step&, const Array&) { last_ = Clock::now(); }

void Profile::after_rule(const Tape&, const Step& step, const Array&) {
  const Clock::time_point now = Clock::now();
  if (step.leaf() == nullptr) rows_[step.name].backward += std::chrono::duration<double>(now - last_).count();
  last_ = Clock::now();
}

void Profile::print(std::ostream& out) const {
  std::vector<std::pair<std::string, Row>> sorted(rows_.begin(), rows_.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.forward + a.second.backward > b.second.forward + b.second.backward;
  });
  Row all;
  for (const auto& [op, row] : sorted) {
    all.calls += row.calls;
    all.forward += row.forward;
    all.backward += row.backward;
    all.output += row.output;
    all.saved += row.saved;
  }
  sorted.emplace_back("all", all);
  std::size_t widest = 2;
  for (const auto& [op, row] : sorted) widest = std::max(widest, op.size());
  const auto line = [&](const std::string& op, const char* numbers) {
    out << op << std::string(widest - op.size(), ' ') << numbers << '\n';
  };
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, "%10s%14s%14s%8s%16s%16s", "calls", "forward ms", "backward ms", "time",
                "output bytes", "saved bytes");
  line("op", numbers);
  const double time = all.forward + all.backward;
  for (const auto& [op, row] : sorted) {
    const double percent = time > 0 ? 100 * (row.forward + row.backward) / time : 0;
    std::snprintf(numbers, sizeof numbers, "%10zu%14.3f%14.3f%6.1f %%%16zu%16zu", row.calls, 1e3 * row.forward,
                  1e3 * row.backward, percent, row.output, row.saved);
    line(op, numbers);
  }
}

}  // namespace TAPEGRAD
