#include "nn/write_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace tapegrad {
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

}  // namespace

void write_file(const std::string& path, const std::string& content) {
  std::error_code unknown;
  const fs::file_status there = fs::status(path, unknown);
  if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there)) {  // the rename would replace it
    throw std::runtime_error("cannot write " + path + ": it is a device or a pipe");
  }
  remove_leftovers(path);
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

}  // namespace tapegrad
