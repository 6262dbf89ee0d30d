// Feeds the reader of safetensors files with what clang's libFuzzer makes up: it must refuse or read, never crash, and
// what it read must come back the same through a file of its own.
//
//   cmake -B build_fuzz -DCMAKE_CXX_COMPILER=clang++ -DTAPEGRAD_FUZZ=ON && make -C build_fuzz safetensors_fuzz
//   build_fuzz/safetensors_fuzz -max_total_time=300 -rss_limit_mb=1024 NEW_FOLDER tests/fuzz/corpus

#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "nn/safetensors.hpp"

using namespace tapegrad;

namespace {

std::optional<State> parse(const std::string& file) {
  std::istringstream in(file);
  try {
    return nn::from_safetensors(in);
  } catch (const Error& error) {
    if (std::strchr(error.what(), '\n')) std::abort();
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::optional<State> state = parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!state) return 0;
  const std::optional<State> again = parse(nn::to_safetensors(*state));
  if (!again || again->texts != state->texts || again->arrays.size() != state->arrays.size()) std::abort();
  for (std::size_t i = 0; i < state->arrays.size(); ++i) {
    const auto& [name, array] = state->arrays[i];
    const auto& [other_name, other] = again->arrays[i];
    if (name != other_name || array.shape() != other.shape()) std::abort();
    if (array.size() > 0 && std::memcmp(array.data(), other.data(), array.size() * sizeof(Real)) != 0) std::abort();
  }
  return 0;
}
