#include "examples/support/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace examples {
namespace {

// Beside the target, because a rename is atomic only within one file system.
std::string name_beside(const std::string& path) {
  const std::filesystem::path target(path);
  std::string name = target.filename().string();  // after a dot: hidden
  name.append(".").append(std::to_string(getpid())).append(".tmp");
  return (target.parent_path() / ".").string() + name;
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

}  // namespace

void write_file(const std::string& path, const std::string& content) {
  const std::string beside = name_beside(path);
  const int file = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  bool ok = file >= 0 && write_all(file, content) && fsync(file) == 0;
  int error = errno;
  if (file >= 0 && close(file) != 0 && ok) {
    error = errno;
    ok = false;
  }
  if (ok && std::rename(beside.c_str(), path.c_str()) != 0) {
    error = errno;
    ok = false;
  }
  if (ok) return;
  if (file >= 0) unlink(beside.c_str());
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(error));
}

void prepare_output_folder(const std::string& folder) {
  if (folder.empty()) throw BadInput("the output folder's name is empty");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw BadInput("cannot create the output folder " + folder + ": " + error.message());
  if (!std::filesystem::is_directory(folder)) throw BadInput("the output folder " + folder + " is not a folder");
  const std::string probe = name_beside(folder + "/probe");
  const int file = open(probe.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0) throw BadInput("cannot write to the output folder " + folder + ": " + std::strerror(errno));
  close(file);
  unlink(probe.c_str());
}

}  // namespace examples
