#include <array>
#include <ostream>
#include <sstream>

#include "autograd/tape.hpp"

namespace TAPEGRAD {
namespace {

std::vector<OperandInfo> operands_of(const Step& step) {
  std::vector<OperandInfo> operands;
  step.describe(operands);
  return operands;
}

/// What an operand is when no step made it.
std::string kind_of(const OperandInfo& operand) { return *operand.kind == '\0' ? "const" : operand.kind; }

std::string shape_text(const OperandInfo& operand) { return operand.shape ? to_text(*operand.shape) : "(?)"; }

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

using Row = std::array<std::string, 5>;

Row row_of(const Step& step, std::size_t& total) {
  Row row{std::to_string(step.index), step.name, "", to_text(step.shape), ""};
  const auto save = [&](const std::string& name, std::size_t bytes) {
    if (bytes == 0) return;
    row[4].append(row[4].empty() ? "" : ", ").append(name).append(numbered(" ", bytes));
    total += bytes;
  };
  const std::vector<OperandInfo> operands = operands_of(step);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandInfo& operand = operands[i];
    const std::string name = numbered("x", i);
    const std::string from = operand.source ? numbered("#", operand.source->index) : kind_of(operand);
    row[2].append(i == 0 ? "" : ", ").append(name).append(" ").append(from).append(" ").append(shape_text(operand));
    save(name, operand.saved);
  }
  save("y", step.saved_output_bytes());
  return row;
}

}  // namespace

void Tape::print(std::ostream& out) const {
  std::vector<Row> rows{{"step", "op", "operands", "y", "saved (bytes)"}};
  std::size_t total = 0;
  for (const Step* step : steps_) rows.push_back(row_of(*step, total));
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line(widths[0] - row[0].size(), ' ');  // numbers stand at the right
    line.append(row[0]);
    for (std::size_t i = 1; i < row.size(); ++i) {
      line.append(2, ' ').append(row[i]).append(widths[i] - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
  out << steps_.size() << (steps_.size() == 1 ? " step saves " : " steps save ") << total
      << " bytes (an array counts in each step that keeps it)\n";
}

std::string Tape::to_dot() const {
  std::ostringstream dot;
  dot << "digraph tape {\n"
         "  node [fontname=\"sans-serif\", fontsize=11, height=0.3];\n"
         "  edge [arrowsize=0.6];\n";
  for (const Step* step : steps_) {
    const char* look = step->leaf() ? "shape=box, style=filled, fillcolor=\"#dbe9f6\"" : "shape=ellipse";
    dot << "  s" << step->index << " [label=\"#" << step->index << ' ' << escaped(step->name) << "\\n"
        << to_text(step->shape) << "\", " << look << "];\n";
    const std::vector<OperandInfo> operands = operands_of(*step);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const OperandInfo& operand = operands[i];
      if (operand.source != nullptr) {
        dot << "  s" << operand.source->index << " -> s" << step->index << ";\n";
        continue;
      }
      const std::string node = numbered("c", step->index).append(numbered("_", i));
      dot << "  " << node << " [label=\"" << kind_of(operand) << "\\n"
          << shape_text(operand) << "\", shape=plaintext, fontcolor=gray40];\n"
          << "  " << node << " -> s" << step->index << " [color=gray60];\n";
    }
  }
  dot << "}\n";
  return dot.str();
}

}  // namespace TAPEGRAD
