/// State: what a checkpoint keeps of a module, an optimiser or a generator.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/require.hpp"

namespace TAPEGRAD {

/// Arrays by name, in an order, and texts by name. Numbers that Real cannot hold, counters say, are texts.
struct State {
  std::vector<std::pair<std::string, Array>> arrays;
  std::map<std::string, std::string> texts;

  /// Adds another state, its names behind `prefix`: `all.add("optimizer.", optimizer.state())`. Refuses a name that is
  /// there already.
  void add(const std::string& prefix, State other);

  /// Removes what has a name behind `prefix`, and returns it without the prefix. Empty when there is none.
  State take(const std::string& prefix);

  /// The array of that name, or null.
  const Array* find(std::string_view name) const;

  /// The text of that name. Refuses one that is not there.
  const std::string& text(const std::string& name) const;

  /// Texts that hold numbers, exactly. Reading refuses a name that is not there and a text that is not such a number.
  void set_number(const std::string& name, double number);
  void set_count(const std::string& name, std::uint64_t count);
  double number(const std::string& name) const;
  std::uint64_t count(const std::string& name) const;
};

/// Names of arrays, and their shapes.
using NamedShapes = std::vector<std::pair<std::string, Shape>>;

/// Refuses, for `who`, arrays that are not those expected, in one line that lists every missing, unexpected and wrongly
/// shaped name. Where not `strict`, missing and unexpected ones are allowed.
void require_arrays(std::string_view who, const NamedShapes& arrays, const NamedShapes& expected, bool strict = true);
void require_arrays(std::string_view who, const State& state, const NamedShapes& expected, bool strict);

/// The text between quotes, with quotes, backslashes and control characters escaped as in JSON.
std::string in_quotes(std::string_view text);

}  // namespace TAPEGRAD
