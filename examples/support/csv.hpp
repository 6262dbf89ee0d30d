// Tables of numbers as people have them: comma, semicolon or tab; with or without a header.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace examples {

/// A file's cells as text, by column. Which columns hold numbers is asked for later, by `choose_columns`.
struct Table {
  std::string path;
  bool has_header = false;
  std::vector<std::string> names;               ///< the header's, or "column1", "column2" ...
  std::vector<std::vector<std::string>> cells;  ///< cells[column][row]
  std::vector<std::size_t> lines;               ///< line number of each row, from 1
  char separator = ',';
  std::size_t rows() const { return lines.size(); }
};

/// Two columns as numbers, of equal length, all finite.
struct Columns {
  std::string x_name;
  std::string y_name;
  std::vector<double> x;
  std::vector<double> y;
};

/// Reads a table. The separator is the tab or semicolon when line 1 has one, else the comma; with tab or semicolon,
/// numbers may have a decimal comma (but not some a comma and some a point). Quoted fields, CRLF, a byte order mark and
/// blank lines are understood. Line 1 is a header when no cell of it is a number. Throws BadInput with the line number
/// for: a file that is missing, empty, a folder or binary; one column; ragged rows; an open quote; under 3 rows of
/// data.
Table read_csv(const std::string& path);

/// The columns named `x` and `y`. An empty name means the first numeric column that is left, as they stand in the file
/// (a column without a name under a header, R's row names, is passed over). Throws BadInput for an unknown, ambiguous
/// or repeated name, and for a cell of the two that is empty, text, NaN or infinite.
Columns choose_columns(const Table& table, const std::string& x = "", const std::string& y = "");

/// Writes columns of equal length below their names: commas, decimal points, every number so that it reads back
/// exactly. Whole or not at all (`write_file`).
void write_csv(const std::string& path, const std::vector<std::string>& names,
               const std::vector<std::vector<double>>& columns);

/// The values rounded to nine digits of numbers that vary by about `spread`, as many as a float has: 1e6 + 0.123456789
/// keeps them all where the spread is 1.
std::vector<double> rounded(std::vector<double> values, double spread = 1);

/// `text` as one CSV field: quoted where it has to be.
std::string csv_field(const std::string& text);

/// The shortest text that reads back as exactly `value`.
std::string csv_number(double value);

}  // namespace examples
