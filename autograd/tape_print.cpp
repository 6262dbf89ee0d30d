#include <array>
#include <cmath>
#include <ostream>
#include <set>
#include <sstream>

#include "autograd/watch.hpp"

namespace TAPEGRAD {
namespace {

std::string numbered(const char* text, std::size_t number) { return std::string(text).append(std::to_string(number)); }

/// Text inside the quotes of a DOT string.
std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

/// All numbers of a few; of many least, largest and mean, of those that are finite.
std::string summary(const Tensor& tensor) {
  if (!tensor.defined()) return "";
  std::ostringstream out;
  out.precision(3);
  if (tensor.size() <= 6) {
    for (const Real number : tensor.value()) out << (out.tellp() > 0 ? ", " : "") << number;
    return out.str();
  }
  std::size_t finite = 0;
  Real least = 0, largest = 0;
  double sum = 0;
  for (const Real number : tensor.value()) {
    if (!std::isfinite(number)) continue;
    least = finite == 0 ? number : std::min(least, number);
    largest = finite == 0 ? number : std::max(largest, number);
    sum += number;
    ++finite;
  }
  if (finite > 0) out << least << " .. " << largest << ", mean " << sum / static_cast<double>(finite);
  if (finite < tensor.size()) out << (finite > 0 ? ", " : "") << tensor.size() - finite << " not finite";
  return out.str();
}

std::string joined(const std::vector<StepView::Name>& names) {
  std::string path;
  for (const StepView::Name& name : names) path.append(path.empty() ? "" : ".").append(name.name);
  return path;
}

/// What is shown in one place: one step, or all steps of a name that is folded.
struct Shown {
  std::size_t first;
  std::size_t last;
  std::vector<StepView::Name> names;  // around it
  const char* folded;                 // the name, null for one step
};

std::vector<Shown> fold(const std::vector<StepView>& steps, std::size_t depth) {
  std::vector<Shown> all;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::vector<StepView::Name>& names = steps[i].names;
    if (names.size() <= depth) {
      all.push_back({i, i, names, nullptr});
      continue;
    }
    const auto same = [&](const std::vector<StepView::Name>& other) {
      return other.size() > depth &&
             std::equal(names.begin(), names.begin() + std::ptrdiff_t(depth) + 1, other.begin());
    };
    if (i > 0 && same(steps[i - 1].names)) {
      all.back().last = i;
    } else {
      all.push_back({i, i, {names.begin(), names.begin() + std::ptrdiff_t(depth)}, names[depth].name});
    }
  }
  return all;
}

// ---- the table ------------------------------------------------------------------------------------------------------

enum Column { kStep, kOp, kOperands, kOutput, kSaved, kValue, kGradient, kIn, kColumns };
using Row = std::array<std::string, kColumns>;

void add_item(std::string& list, const std::string& item) { list.append(list.empty() ? "" : ", ").append(item); }

Row row_of(const StepView& step, std::size_t index, std::size_t& total) {
  Row row;
  row[kStep] = std::to_string(index);
  row[kOp] = step.op;
  const auto save = [&](const std::string& name, std::size_t bytes) {
    if (bytes == 0) return;
    add_item(row[kSaved], name + numbered(" ", bytes));
    total += bytes;
  };
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    const StepView::Operand& operand = step.operands[i];
    const std::string name = numbered("x", i);
    const std::string from =
        operand.source < 0 ? operand.kind : numbered("#", static_cast<std::size_t>(operand.source));
    add_item(row[kOperands], std::string(name).append(" ").append(from).append(" ").append(operand.shape));
    save(name, operand.saved);
  }
  save("y", step.saved_output);
  return row;
}

/// The operands of a folded row are the steps outside that it uses.
Row folded_row(const std::vector<StepView>& steps, const Shown& shown, std::size_t& total) {
  Row row;
  row[kStep] = std::to_string(shown.first).append(numbered("-", shown.last));
  row[kOp] = std::string(shown.folded).append(numbered(": ", shown.last - shown.first + 1)).append(" steps");
  std::set<std::ptrdiff_t> outside;
  std::size_t saved = 0;
  for (std::size_t i = shown.first; i <= shown.last; ++i) {
    saved += steps[i].saved_output;
    for (const StepView::Operand& operand : steps[i].operands) {
      saved += operand.saved;
      if (operand.source < 0 || operand.source >= static_cast<std::ptrdiff_t>(shown.first)) continue;
      if (outside.insert(operand.source).second)
        add_item(row[kOperands], numbered("#", static_cast<std::size_t>(operand.source)) + " " + operand.shape);
    }
  }
  row[kSaved] = std::to_string(saved);
  total += saved;
  return row;
}

void print_table(std::ostream& out, const std::vector<StepView>& steps, const ShowOptions& options) {
  std::vector<Row> rows{{"step", "op", "operands", "y", "saved (bytes)", "value", "gradient", "in"}};
  std::size_t total = 0;
  for (const Shown& shown : fold(steps, options.depth)) {
    const StepView& last = steps[shown.last];
    rows.push_back(shown.folded ? folded_row(steps, shown, total) : row_of(last, shown.last, total));
    rows.back()[kOutput] = to_text(last.shape);
    rows.back()[kValue] = summary(last.value);
    rows.back()[kGradient] = summary(last.gradient);
    rows.back()[kIn] = joined(shown.names);
  }
  // Columns that nothing is in are left out, but for those that every tape has.
  std::array<std::size_t, kColumns> widths{};
  for (std::size_t i = 0; i < kColumns; ++i) {
    bool filled = i <= kSaved;
    for (std::size_t row = 1; row < rows.size(); ++row) filled |= !rows[row][i].empty();
    for (const Row& row : rows) {
      if (filled) widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const Row& row : rows) {
    std::string line(widths[kStep] - row[kStep].size(), ' ');  // numbers stand at the right
    line.append(row[kStep]);
    for (std::size_t i = kOp; i < kColumns; ++i) {
      if (widths[i] > 0) line.append(2, ' ').append(row[i]).append(widths[i] - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
  out << steps.size() << (steps.size() == 1 ? " step saves " : " steps save ") << total
      << " bytes (an array counts in each step that keeps it)\n";
}

// ---- the graph ------------------------------------------------------------------------------------------------------

/// Ends the frames that a node is not in, and begins those that it is in; returns the indentation.
std::string enter(std::ostream& dot, std::vector<StepView::Name>& open, const std::vector<StepView::Name>& names) {
  const auto indent = [&] { return std::string(2 + 2 * open.size(), ' '); };
  const auto common = std::mismatch(open.begin(), open.end(), names.begin(), names.end()).first - open.begin();
  while (open.size() > static_cast<std::size_t>(common)) {
    open.pop_back();
    dot << indent() << "}\n";
  }
  while (open.size() < names.size()) {
    const StepView::Name& name = names[open.size()];
    dot << indent() << "subgraph cluster_" << name.first << '_' << open.size() << " {\n";
    open.push_back(name);
    dot << indent() << "label=\"" << escaped(name.name) << "\"; style=rounded; color=gray60;\n";
  }
  return indent();
}

std::string draw(const std::vector<StepView>& steps, const ShowOptions& options) {
  std::ostringstream dot;
  std::string edges;
  std::set<std::string> drawn;
  const auto edge = [&](const std::string& from, const std::string& to, const char* look) {
    const std::string text = std::string("  ").append(from).append(" -> ").append(to).append(look).append(";\n");
    if (drawn.insert(text).second) edges += text;
  };
  const std::vector<Shown> all = fold(steps, options.depth);
  std::vector<std::string> node_of(steps.size());
  for (const Shown& shown : all) {
    std::fill(node_of.begin() + std::ptrdiff_t(shown.first), node_of.begin() + std::ptrdiff_t(shown.last) + 1,
              numbered("s", shown.first));
  }
  dot << "digraph tape {\n"
         "  node [fontname=\"sans-serif\", fontsize=11, height=0.3];\n"
         "  graph [fontname=\"sans-serif\", fontsize=11];\n"
         "  edge [arrowsize=0.6];\n";
  std::vector<StepView::Name> open;
  for (const Shown& shown : all) {
    const StepView& last = steps[shown.last];
    const std::string indent = enter(dot, open, shown.names);
    const std::string& node = node_of[shown.first];
    dot << indent << node << " [label=\"#" << shown.first;
    if (shown.folded) dot << "-" << shown.last;
    dot << ' ' << escaped(shown.folded ? shown.folded : last.op) << "\\n" << to_text(last.shape);
    if (last.value.defined()) dot << "\\n" << escaped(summary(last.value));
    if (last.gradient.defined()) dot << "\\ngradient " << escaped(summary(last.gradient));
    dot << "\", "
        << (shown.folded ? "shape=box3d, style=filled, fillcolor=\"#eef3e2\""
            : last.leaf  ? "shape=box, style=filled, fillcolor=\"#dbe9f6\""
                         : "shape=ellipse")
        << "];\n";
    for (std::size_t i = shown.first; i <= shown.last; ++i) {
      for (std::size_t x = 0; x < steps[i].operands.size(); ++x) {
        const StepView::Operand& operand = steps[i].operands[x];
        if (operand.source >= 0) {
          const std::string& from = node_of[static_cast<std::size_t>(operand.source)];
          if (from != node) edge(from, node, "");
        } else if (!shown.folded) {
          const std::string constant = numbered("c", i).append(numbered("_", x));
          dot << indent << constant << " [label=\"" << operand.kind << "\\n"
              << operand.shape << "\", shape=plaintext, fontcolor=gray40];\n";
          edge(constant, node, " [color=gray60]");
        }
      }
    }
  }
  enter(dot, open, {});
  dot << edges << "}\n";
  return dot.str();
}

std::vector<StepView> views_of(const Tape& tape) {
  std::vector<StepView> steps;
  for (std::size_t i = 0; i < tape.size(); ++i) steps.push_back(view_of(tape, tape[i]));
  return steps;
}

}  // namespace

StepView view_of(const Tape& tape, const Step& step) {
  StepView view{step.name, step.shape, step.leaf() != nullptr, {}, {}, step.saved_output_bytes(), {}, {}};
  for (const StepName& name : tape.names()) {
    if (name.first <= step.index && step.index < name.last) view.names.push_back({name.name, name.first});
  }
  std::vector<OperandInfo> operands;
  step.describe(operands);
  for (const OperandInfo& operand : operands) {
    view.operands.push_back({operand.source ? static_cast<std::ptrdiff_t>(operand.source->index) : -1,
                             *operand.kind == '\0' ? "const" : operand.kind,
                             operand.shape ? to_text(*operand.shape) : "(?)", operand.saved});
  }
  return view;
}

void Tape::print(std::ostream& out, const ShowOptions& options) const { print_table(out, views_of(*this), options); }
std::string Tape::to_dot(const ShowOptions& options) const { return draw(views_of(*this), options); }

void TapeView::print(std::ostream& out, const ShowOptions& options) const { print_table(out, steps_, options); }
std::string TapeView::to_dot(const ShowOptions& options) const { return draw(steps_, options); }

void TapeView::recorded(const Tape& tape, const Step& step, const Tensor& y) {
  if (std::exchange(tape_, tape.id()) != tape.id()) steps_.clear();
  if (step.index != steps_.size()) return;  // it was not watched from its first step on
  steps_.push_back(view_of(tape, step));
  steps_.back().value = step.leaf() ? y.detach() : y;  // an optimiser changes leaves
}

void TapeView::before_rule(const Tape& tape, const Step& step, const Array& dy) {
  if (tape.id() == tape_ && step.index < steps_.size()) steps_[step.index].gradient = Tensor(Array(dy));
}

}  // namespace TAPEGRAD
