#include "examples/support/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "examples/support/files.hpp"

namespace examples {
namespace {

struct Row {
  std::size_t line;
  std::vector<std::string> cells;
};

[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& what) {
  throw BadInput(path + (line > 0 ? ", line " + std::to_string(line) : "") + ": " + what);
}

std::string shown(const std::string& cell) {
  return "'" + (cell.size() > 40 ? cell.substr(0, 40) + "..." : cell) + "'";
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string text_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) refuse(path, 0, "no such file");
  if (fs::is_directory(status)) refuse(path, 0, "is a folder, not a file");
  // A device such as /dev/zero never ends.
  if (!fs::is_regular_file(status) && !fs::is_fifo(status)) refuse(path, 0, "is not a file that can be read");
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  std::string text = bytes.str();
  if (!in || (text.empty() && fs::is_regular_file(status) && fs::file_size(path, error) > 0)) {
    refuse(path, 0, "cannot be read");
  }
  if (text.rfind("\xEF\xBB\xBF", 0) == 0) text.erase(0, 3);
  std::size_t line = 1;
  for (const unsigned char c : text) {
    if (c == '\n') ++line;
    if (c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f') refuse(path, line, "binary data; expected text");
  }
  return text;
}

// A comma may be a decimal comma, or part of a name, where there is a tab or a semicolon; so it comes last.
char find_separator(const std::string& text) {
  bool quoted = false;
  bool tab = false;
  bool semicolon = false;
  for (const char c : text.substr(std::min(text.size(), text.find_first_not_of("\r\n")))) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '\n' || c == '\r')) break;
    if (!quoted && c == '\t') tab = true;
    if (!quoted && c == ';') semicolon = true;
  }
  return tab ? '\t' : semicolon ? ';' : ',';
}

std::vector<Row> split(const std::string& path, const std::string& text, char separator) {
  std::vector<Row> rows;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    Row row{line, {}};
    for (bool end_of_row = false; !end_of_row;) {
      std::string cell;
      while (at < text.size() && text[at] == ' ') ++at;
      if (at < text.size() && text[at] == '"') {
        const std::size_t opened = line;
        for (++at;; ++at) {
          if (at == text.size()) refuse(path, opened, "a quote is opened and never closed");
          if (text[at] == '"' && (at + 1 == text.size() || text[at + 1] != '"')) break;
          if (text[at] == '"') ++at;
          if (text[at] == '\n') ++line;
          cell += text[at];
        }
        for (++at; at < text.size() && text[at] == ' ';) ++at;
        if (at < text.size() && text[at] != separator && text[at] != '\r' && text[at] != '\n') {
          refuse(path, line, "text after the closing quote of " + shown(cell));
        }
      } else {
        const std::size_t end = std::min(text.size(), text.find_first_of(std::string("\r\n") + separator, at));
        cell = trimmed(text.substr(at, end - at));
        at = end;
      }
      row.cells.push_back(cell);
      end_of_row = at == text.size() || text[at] != separator;
      if (!end_of_row) ++at;
    }
    if (at < text.size() && text[at] == '\r') ++at;
    if (at < text.size() && text[at] == '\n') ++at;
    ++line;
    if (row.cells.size() > 1 || !row.cells[0].empty()) rows.push_back(std::move(row));
  }
  return rows;
}

enum class Kind { number, not_finite, text };

Kind parse(std::string cell, char separator, double& value) {
  if (separator != ',' && std::count(cell.begin(), cell.end(), ',') == 1) {
    if (cell.find('.') != std::string::npos) return Kind::text;
    cell[cell.find(',')] = '.';
  }
  std::string lower = cell;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (lower.find_first_of("+-") == 0) lower.erase(0, 1);
  if (lower == "nan" || lower == "inf" || lower == "infinity") return Kind::not_finite;
  // strtod takes hexadecimal too, which nobody means in a table.
  if (cell.empty() || cell.find_first_not_of("0123456789+-.eE") != std::string::npos) return Kind::text;
  char* end = nullptr;
  value = std::strtod(cell.c_str(), &end);
  if (*end != '\0') return Kind::text;
  return std::isfinite(value) ? Kind::number : Kind::not_finite;
}

bool is_text(const std::string& cell, char separator) {
  double ignored = 0;
  return parse(cell, separator, ignored) == Kind::text;
}

bool first_row_is_header(const std::string& path, const std::vector<Row>& rows, char separator) {
  std::size_t texts = 0;
  const auto& first = rows[0].cells;
  for (const auto& cell : first) texts += is_text(cell, separator);
  if (texts == first.size()) return true;
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (!is_text(first[c], separator)) continue;
    const bool number_below =
        std::any_of(rows.begin() + 1, rows.end(), [&](const Row& row) { return !is_text(row.cells[c], separator); });
    if (number_below) {
      refuse(path, rows[0].line,
             "neither a header nor data: " + (first[c].empty() ? "an empty cell" : shown(first[c])) + " among numbers");
    }
  }
  return false;
}

// "1.234" is 1234 where the comma is the decimal sign: a file that has both is a guess, so it is refused.
void refuse_mixed_decimals(const Table& table) {
  std::size_t comma = 0;
  std::size_t point = 0;
  for (const auto& column : table.cells) {
    for (std::size_t r = 0; r < column.size(); ++r) {
      if (is_text(column[r], table.separator)) continue;
      if (column[r].find(',') != std::string::npos) comma = table.lines[r];
      if (column[r].find('.') != std::string::npos) point = table.lines[r];
    }
  }
  if (comma > 0 && point > 0) {
    refuse(table.path, std::max(comma, point),
           "decimal commas and decimal points in one file (the other one is in line " +
               std::to_string(std::min(comma, point)) + ")");
  }
}

std::string list_of(const std::vector<std::string>& names) {
  std::string all;
  const std::size_t listed = std::min<std::size_t>(names.size(), 20);
  for (std::size_t i = 0; i < listed; ++i) all += (i == 0 ? "" : ", ") + names[i];
  if (listed < names.size()) all += " and " + std::to_string(names.size() - listed) + " more";
  return all;
}

std::size_t find_column(const Table& table, const std::string& name) {
  const auto found = std::find(table.names.begin(), table.names.end(), name);
  if (found == table.names.end()) {
    refuse(table.path, 0, "no column is named " + shown(name) + "; there are: " + list_of(table.names));
  }
  if (std::find(found + 1, table.names.end(), name) != table.names.end()) {
    refuse(table.path, 0, "more than one column is named " + shown(name));
  }
  return static_cast<std::size_t>(found - table.names.begin());
}

// A column without a single number is text; one with some numbers is meant as numbers, and `numbers` names the bad
// cell.
std::size_t first_numeric(const Table& table, std::size_t other_than) {
  for (std::size_t c = 0; c < table.names.size(); ++c) {
    const auto& column = table.cells[c];
    if (c == other_than || table.names[c].empty()) continue;
    if (!std::all_of(column.begin(), column.end(), [&](auto& cell) { return is_text(cell, table.separator); }))
      return c;
  }
  // The likeliest to be meant as numbers: a column that begins with a digit or sign.
  for (std::size_t c = 0; c < table.names.size(); ++c) {
    const std::string& cell = table.cells[c][0];
    if (c == other_than || cell.empty() || std::string("0123456789+-.").find(cell[0]) == std::string::npos) continue;
    refuse(table.path, table.lines[0],
           "two columns of numbers are needed, but " + shown(cell) + " in column " + shown(table.names[c]) +
               " is not a number");
  }
  refuse(table.path, 0, "two columns of numbers are needed; the columns are: " + list_of(table.names));
}

std::vector<double> numbers(const Table& table, std::size_t column) {
  std::vector<double> values(table.rows());
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const std::string& cell = table.cells[column][r];
    const Kind kind = parse(cell, table.separator, values[r]);
    if (kind == Kind::number) continue;
    const std::string what = cell.empty()         ? "is empty"
                             : kind == Kind::text ? "is not a number"
                                                  : "is not a finite number";
    refuse(table.path, table.lines[r],
           (cell.empty() ? "a cell" : shown(cell)) + " in column " + shown(table.names[column]) + " " + what);
  }
  return values;
}

}  // namespace

Table read_csv(const std::string& path) {
  const std::string text = text_of(path);
  Table table;
  table.path = path;
  table.separator = find_separator(text);
  const std::vector<Row> rows = split(path, text, table.separator);
  if (rows.empty()) refuse(path, 0, "is empty");
  const std::size_t width = rows[0].cells.size();
  if (width < 2) refuse(path, rows[0].line, "one column; expected two or more, apart by comma, semicolon or tab");
  for (const Row& row : rows) {
    if (row.cells.size() != width) {
      refuse(path, row.line,
             std::to_string(row.cells.size()) + " cells, but line " + std::to_string(rows[0].line) + " has " +
                 std::to_string(width));
    }
  }
  table.has_header = first_row_is_header(path, rows, table.separator);
  const std::size_t first = table.has_header ? 1 : 0;
  if (rows.size() - first < 3) {
    refuse(path, 0, "at least 3 rows of data are needed; got " + std::to_string(rows.size() - first));
  }
  table.cells.resize(width);
  for (std::size_t r = first; r < rows.size(); ++r) {
    table.lines.push_back(rows[r].line);
    for (std::size_t c = 0; c < width; ++c) table.cells[c].push_back(rows[r].cells[c]);
  }
  for (std::size_t c = 0; c < width; ++c) {
    table.names.push_back(table.has_header ? rows[0].cells[c] : "column" + std::to_string(c + 1));
  }
  refuse_mixed_decimals(table);
  return table;
}

Columns choose_columns(const Table& table, const std::string& x, const std::string& y) {
  if (!x.empty() && x == y) refuse(table.path, 0, "x and y are the same column, " + shown(x));
  const std::size_t none = table.names.size();
  const std::size_t named_y = y.empty() ? none : find_column(table, y);
  const std::size_t at_x = x.empty() ? first_numeric(table, named_y) : find_column(table, x);
  const std::size_t at_y = y.empty() ? first_numeric(table, at_x) : named_y;
  return {table.names[at_x], table.names[at_y], numbers(table, at_x), numbers(table, at_y)};
}

std::vector<double> rounded(std::vector<double> values, double spread) {
  double largest = 0;
  for (const double v : values) largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : largest;
  const double more = largest > spread ? std::floor(std::log10(largest / spread)) : 0;
  for (double& v : values) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*g", static_cast<int>(std::min(9 + more, 17.0)), v);
    v = std::strtod(text, nullptr);
  }
  return values;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",;\t\"\r\n") == std::string::npos && trimmed(text) == text) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_number(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

void write_csv(const std::string& path, const std::vector<std::string>& names,
               const std::vector<std::vector<double>>& columns) {
  bool equal = !columns.empty() && names.size() == columns.size();
  for (const auto& column : columns) equal = equal && column.size() == columns[0].size();
  if (!equal) throw std::invalid_argument("[write_csv] one name a column and columns of equal length are needed");
  std::string text;
  const auto add = [&](std::size_t column, const std::string& cell) {
    text += cell;
    text += column + 1 < names.size() ? ',' : '\n';
  };
  for (std::size_t c = 0; c < names.size(); ++c) add(c, csv_field(names[c]));
  for (std::size_t r = 0; r < columns[0].size(); ++r) {
    for (std::size_t c = 0; c < columns.size(); ++c) add(c, csv_number(columns[c][r]));
  }
  write_file(path, text);
}

}  // namespace examples
