// Checkpoints of the user's: what is wrong with one is bad input.
#pragma once

#include <algorithm>
#include <cmath>

#include "autograd/state.hpp"
#include "examples/support/files.hpp"

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

}  // namespace examples
