// Settings of a training: options of the command line, and texts in its checkpoint that can't be changed later.
//
// A program's Settings have `seed`, `width` and `heads`, and each(visit), which calls visit(name, field, lowest,
// highest, help) for every setting that is an option: its field is a std::size_t or a double.
#pragma once

#include "autograd/state.hpp"
#include "examples/support/program.hpp"
#include "examples/support/show.hpp"

namespace examples {

void add_settings(CLI::App& app, auto& settings) {
  settings.each([&](const std::string& name, auto& field, double low, double high, const char* help) {
    add_number(app, "--" + name, field, low, high, help);
  });
}

/// set(option, field, value), for defaults that depend on other options.
inline auto setter_of_defaults(const CLI::App& app) {
  return [&app](const char* option, auto& field, double value) {
    if (app.count(option) == 0) field = static_cast<std::remove_cvref_t<decltype(field)>>(value);
  };
}

/// Refuses, for `who`, what doesn't go together.
void require_heads(const auto& settings, const std::string& who) {
  if (settings.width % settings.heads == 0) return;
  throw BadInput(who + text(": the heads must divide the width; got %zu and %zu", settings.heads, settings.width));
}

tapegrad::State state_of_settings(auto settings) {
  tapegrad::State state;
  state.set_count("seed", settings.seed);
  settings.each([&](const std::string& name, auto& field, auto&&...) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(field)>>) {
      state.set_count(name, field);
    } else {
      state.set_number(name, field);
    }
  });
  return state;
}

/// Takes all from the checkpoint at `path`. Refuses what is out of range there, and an option of the command line that
/// says something else.
void load_settings(auto& settings, const tapegrad::State& state, const CLI::App& app, const std::string& path) {
  const auto take = [&](const std::string& name, auto& field, auto value) {
    if (app.count("--" + name) > 0 && field != value) {
      throw BadInput(path + text(": was trained with --%s %.9g; got %.9g", name.c_str(), static_cast<double>(value),
                                 static_cast<double>(field)));
    }
    field = value;
  };
  settings.seed = state.count("seed");
  settings.each([&](const std::string& name, auto& field, double low, double high, const char*) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(field)>>) {
      take(name, field, state.count(name));
    } else {
      take(name, field, state.number(name));
    }
    const auto value = static_cast<double>(field);
    if (value >= low && value <= high) return;
    throw BadInput(path + text(": its %s must be from %.9g to %.9g; got %.9g", name.c_str(), low, high, value));
  });
  require_heads(settings, path);
}

/// Refuses a seed of the command line that is not the one of the checkpoint at `path`.
void require_seed(const auto& settings, const CLI::App& app, std::uint64_t seed, const std::string& path) {
  if (app.count("--seed") == 0 || seed == settings.seed) return;
  throw BadInput(path + ": was trained with --seed " + std::to_string(settings.seed) + "; got " + std::to_string(seed));
}

}  // namespace examples
