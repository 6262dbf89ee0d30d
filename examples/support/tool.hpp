// Other programs that draw for ours: gnuplot, Graphviz.
#pragma once

#include <string>
#include <vector>

namespace examples {

/// Where a program is: what the environment's `variable` says, else the first of that name on PATH; empty if it is not
/// there, or can't be run.
std::string find_tool(const std::string& name, const char* variable);

/// What the tool at `path` writes to its standard output when it is given the input; no shell, and no file's name, is
/// part of it. Throws std::runtime_error, with the last line of its complaints, when it fails or writes nothing.
std::string output_of(const std::string& path, const std::vector<std::string>& arguments, const std::string& input);

}  // namespace examples
