#include "nn/serialize.hpp"

#include <charconv>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "nn/file.hpp"
#include "nn/safetensors.hpp"

namespace TAPEGRAD::nn {
namespace {

bool same_bits(const Array& a, const Array& b) {
  return a.shape() == b.shape() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0);
}

std::ifstream open(const std::string& path) {
  std::ifstream file = open_file(path);
  require(file.is_open(), "load_checkpoint", "the file must be there, plain and readable", in_quotes(path));
  return file;
}

}  // namespace

State state_of(const Module& module) {
  State state;
  for (const auto& [name, parameter] : module.named_parameters()) state.arrays.emplace_back(name, parameter.value());
  return state;
}

void load_state(Module& module, const State& state, bool strict) {
  std::map<std::string_view, const Array*> arrays;
  for (const auto& [name, array] : state.arrays) arrays.emplace(name, &array);
  struct Source {
    std::string name;
    const Array* array;
  };
  std::map<const Cell*, Source> sources;  // the first name of each parameter that the state has
  const auto named = module.named_parameters();
  for (const auto& [name, parameter] : named) {
    const auto found = arrays.find(name);
    if (found == arrays.end()) continue;
    const auto [source, first] = sources.try_emplace(&parameter.cell(), Source{name, found->second});
    require(first || same_bits(*source->second.array, *found->second), "load_state",
            "the names of a shared parameter must have the same values", in_quotes(source->second.name),
            in_quotes(name));
  }
  std::vector<std::pair<std::string, Shape>> expected;
  for (const auto& [name, parameter] : named) {
    const bool by_another_name = sources.contains(&parameter.cell()) && !arrays.contains(name);
    if (!by_another_name) expected.emplace_back(name, parameter.shape());
  }
  require_arrays("load_state", state, expected, strict);
  for (Parameter& parameter : module.parameters()) {
    const auto source = sources.find(&parameter.cell());
    if (source == sources.end() || parameter.size() == 0) continue;
    std::memcpy(parameter.mutable_value().data(), source->second.array->data(), parameter.size() * sizeof(Real));
  }
}

State state_of(const Rng& rng) {
  std::ostringstream text;
  text << std::hex << std::setfill('0');
  for (const std::uint64_t word : rng.state()) text << std::setw(16) << word;
  State state;
  state.texts["xoshiro256++"] = text.str();
  return state;
}

void load_state(Rng& rng, const State& state) {
  const std::string& text = state.text("xoshiro256++");
  const bool right = text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
  require(right, "load_state", "a generator's state must be 64 hexadecimal digits", in_quotes(text));
  std::uint64_t words[4] = {};
  for (std::size_t i = 0; i < 4; ++i) std::from_chars(text.data() + 16 * i, text.data() + 16 * (i + 1), words[i], 16);
  rng.set_state(words);
}

void save_checkpoint(const std::string& path, const State& state) { write_file(path, to_safetensors(state)); }

State load_checkpoint(const std::string& path) {
  std::ifstream file = open(path);
  return from_safetensors(file, "load_checkpoint " + in_quotes(path));
}

void load_checkpoint(const std::string& path, Module& module, const std::vector<std::string>& skipped) {
  std::ifstream file = open(path);
  const std::string who = "load_checkpoint " + in_quotes(path);
  read_safetensors(file, who, skipped, [&](const auto& arrays) {
    std::map<std::string, Parameter> parameters;
    NamedShapes expected;
    for (const auto& [name, parameter] : module.named_parameters()) {
      parameters.emplace(name, parameter);
      expected.emplace_back(name, parameter.shape());
    }
    require_arrays(who, arrays, expected);
    std::vector<Array*> places;
    for (const auto& [name, shape] : arrays) places.push_back(&parameters.at(name).mutable_value());
    return places;
  });
}

}  // namespace TAPEGRAD::nn
