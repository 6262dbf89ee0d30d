#include "nn/serialize.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "nn/safetensors.hpp"

namespace TAPEGRAD::nn {
namespace {

namespace fs = std::filesystem;

/// ".NAME.": how the names of the files beside `path` start. Hidden, and beside it because a rename is atomic only
/// within one file system. "PID.N.tmp" follows.
std::string start_of_names(const fs::path& path) {
  std::string start = path.filename().string();
  start.insert(start.begin(), '.');
  return start += '.';
}

std::string name_beside(const fs::path& path) {
  static std::atomic<unsigned> saves{0};
  std::string name = start_of_names(path);
  name.append(std::to_string(getpid())).append(".").append(std::to_string(saves++)).append(".tmp");
  return (path.parent_path() / name).string();
}

/// Removes what programs that are no more left beside `path`.
void remove_leftovers(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string start = start_of_names(path);
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".tmp")) continue;
    pid_t writer = 0;
    const auto [rest, bad] = std::from_chars(name.data() + start.size(), name.data() + name.size(), writer);
    if (bad != std::errc() || *rest != '.' || writer <= 0) continue;
    if (kill(writer, 0) != 0 && errno == ESRCH) unlink(at->path().c_str());
  }
}

bool write_all(int file, const std::string& content) {
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t n = write(file, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

/// Makes a rename within the folder last. A file system that cannot is no failure.
bool sync_folder(const fs::path& path) {
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno == EACCES;  // a folder that may be written but not read
  const bool ok = fsync(file) == 0 || errno == EINVAL;
  const int error = errno;
  close(file);
  errno = error;
  return ok;
}

void write_file(const std::string& path, const std::string& content) {
  const std::string temporary = name_beside(path);
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  bool ok = file >= 0 && write_all(file, content) && fsync(file) == 0;
  int error = errno;
  if (file >= 0 && close(file) != 0 && ok) {
    error = errno;
    ok = false;
  }
  if (ok) {
    ok = std::rename(temporary.c_str(), path.c_str()) == 0 && sync_folder(path);
    error = errno;
  }
  if (ok) return;
  if (file >= 0) unlink(temporary.c_str());
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(error));
}

bool same_bits(const Array& a, const Array& b) {
  return a.shape() == b.shape() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0);
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
  const auto found = state.texts.find("xoshiro256++");
  require(found != state.texts.end(), "load_state", "a generator's state must have a text xoshiro256++");
  const std::string& text = found->second;
  const bool right = text.size() == 64 && text.find_first_not_of("0123456789abcdef") == text.npos;
  require(right, "load_state", "a generator's state must be 64 hexadecimal digits", in_quotes(text));
  std::uint64_t words[4] = {};
  for (std::size_t i = 0; i < 4; ++i) std::from_chars(text.data() + 16 * i, text.data() + 16 * (i + 1), words[i], 16);
  rng.set_state(words);
}

void save_checkpoint(const std::string& path, const State& state) {
  const std::string file = to_safetensors(state);
  remove_leftovers(path);
  write_file(path, file);
}

State load_checkpoint(const std::string& path) {
  std::error_code error;
  const bool plain = fs::is_regular_file(path, error);
  std::ifstream file;
  if (plain) file.open(path, std::ios::binary);
  require(plain && file.is_open(), "load_checkpoint", "the file must be there, plain and readable", in_quotes(path));
  return from_safetensors(file, "load_checkpoint " + in_quotes(path));
}

}  // namespace TAPEGRAD::nn
