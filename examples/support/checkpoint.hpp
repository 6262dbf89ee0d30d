// Checkpoints of the user's: what is wrong with one is bad input, and an earlier one is kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "autograd/state.hpp"
#include "examples/support/files.hpp"
#include "examples/support/show.hpp"

namespace examples {

/// `work()`, with an Error from it as a BadInput about what is read: the file at `path`, or an option.
auto reading(const std::string& path, auto&& work) {
  try {
    return work();
  } catch (const tapegrad::Error& error) {
    std::string what = error.what();  // "[who] what is wrong", the former being nothing to the user
    const std::string who = tapegrad::in_quotes(path) + "] ";
    const std::size_t named = what.find(who), end = what.find("] ");
    if (named != std::string::npos) {
      what.erase(0, named + who.size());
    } else if (what.starts_with('[') && end != std::string::npos) {
      what.erase(0, end + 2);
    }
    throw BadInput(path + ": " + what);
  }
}

/// The first array's name with NaN or infinities, but for measurements that were not made; null when there is none.
inline const std::string* find_not_finite(const tapegrad::State& state) {
  for (const auto& [name, array] : state.arrays) {
    const bool finite = std::all_of(array.begin(), array.end(), [](auto x) { return std::isfinite(x); });
    if (!finite && name != "log.measured") return &name;
  }
  return nullptr;
}

/// Moves what was saved earlier out of the way, be it at the end of a link.
inline void keep_previous(const std::string& save) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(save, none)) return;
  const std::string file = std::filesystem::canonical(save), previous = file + ".previous";
  std::filesystem::rename(file, previous);
  show("what was saved earlier is kept: " + previous);
}

}  // namespace examples
