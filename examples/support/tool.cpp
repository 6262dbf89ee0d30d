#include "examples/support/tool.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "examples/support/plot_parts.hpp"

extern char** environ;

namespace examples {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File nameless_file() {
  File file(std::tmpfile(), std::fclose);
  if (!file) throw std::runtime_error(std::string("cannot create a temporary file: ") + std::strerror(errno));
  return file;
}

std::string content_of(const File& file) {
  std::rewind(file.get());
  std::string content;
  char block[65536];
  while (const std::size_t n = std::fread(block, 1, sizeof block, file.get())) content.append(block, n);
  return content;
}

// gnuplot's messages begin with the line of the script and a caret under the place; the last line says what is wrong.
std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last = "no message";
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t^") != std::string::npos) last = line;
  }
  return printable(last.substr(last.find_first_not_of(" \t")), 300);
}

}  // namespace

std::string find_tool(const std::string& name, const char* variable) {
  const auto runs = [](const std::string& file) { return !file.empty() && access(file.c_str(), X_OK) == 0; };
  if (const char* asked = std::getenv(variable)) return runs(asked) ? asked : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (runs(folder + "/" + name)) return folder + "/" + name;
  }
  return "";
}

std::string output_of(const std::string& path, const std::vector<std::string>& arguments, const std::string& input) {
  const File in = nameless_file(), out = nameless_file(), err = nameless_file();
  if (std::fwrite(input.data(), 1, input.size(), in.get()) != input.size() || std::fflush(in.get()) != 0) {
    throw std::runtime_error(std::string("cannot write a temporary file: ") + std::strerror(errno));
  }
  std::rewind(in.get());
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, fileno(err.get()), STDERR_FILENO);
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawn(&child, path.c_str(), &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) throw std::runtime_error("cannot start " + path + ": " + std::strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string output = content_of(out);
  if (status != 0 || output.empty()) {
    throw std::runtime_error(path.substr(path.rfind('/') + 1) + " failed: " + last_line(content_of(err)));
  }
  return output;
}

}  // namespace examples
