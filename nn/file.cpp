#include "nn/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>

namespace tapegrad {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".tmp";

/// ".NAME.": how the names of the files beside `path` start. Hidden, and beside it because a rename is atomic only
/// within one file system. Digits of chance and kSuffix follow.
std::string start_of_names(const fs::path& path) {
  std::string start = path.filename().string();
  start.insert(start.begin(), '.');
  return start += '.';
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

/// Removes what programs that are no more left beside `path`. A writer's lock ends with it, however it ends and
/// wherever it runs, which its process number would not tell.
void remove_leftovers(const fs::path& path) {
  const std::string start = start_of_names(path);
  std::error_code error;
  for (fs::directory_iterator at(folder_of(path), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(kSuffix)) continue;
    const int file = open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) fs::remove_all(at->path(), error);
    close(file);
  }
}

/// A new file or folder beside `path`, locked; -1, and errno, when there can be none.
int create_beside(const fs::path& path, std::string& name, bool folder = false) {
  std::random_device chance;
  for (;;) {
    name = (folder_of(path) / start_of_names(path)).string();
    name.append(std::to_string(chance())).append(kSuffix);
    const bool made = folder && mkdir(name.c_str(), 0777) == 0;
    const int file = made     ? open(name.c_str(), O_RDONLY | O_CLOEXEC)
                     : folder ? -1
                              : open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && (made || errno == EEXIST)) continue;
    if (file < 0) return -1;
    struct stat state;
    flock(file, LOCK_EX);
    if (fstat(file, &state) == 0 && state.st_nlink > 0) return file;
    close(file);  // another program took it for a leftover before it was locked
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
  const std::string folder = folder_of(path).string();
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno == EACCES;  // a folder that may be written but not read
  const bool ok = fsync(file) == 0 || errno == EINVAL;
  const int error = errno;
  close(file);
  errno = error;
  return ok;
}

/// Lets the folders have each other's names, at once. False where one is missing, or the file system cannot.
bool swap_names([[maybe_unused]] const std::string& a, [[maybe_unused]] const std::string& b) {
#ifdef RENAME_EXCHANGE
  return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
#else
  return false;
#endif
}

}  // namespace

std::ifstream open_file(const std::string& path) {
  std::error_code error;
  std::ifstream file;
  if (fs::is_regular_file(path, error)) file.open(path, std::ios::binary);
  return file;
}

void write_file(const std::string& given, const std::string& content) {
  const auto refuse = [&](const std::string& why) { throw std::runtime_error("cannot write " + given + ": " + why); };
  fs::path path = given;
  std::error_code none;
  for (int links = 0; fs::is_symlink(path, none); path = folder_of(path) / fs::read_symlink(path)) {
    if (++links > 40) refuse(std::strerror(ELOOP));
  }
  struct stat old;
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) refuse("it is a folder");
  if (exists && !S_ISREG(old.st_mode)) refuse("it is a device or a pipe");  // the rename would replace it
  remove_leftovers(path);
  std::string temporary;
  const int file = create_beside(path, temporary);
  const bool ok = file >= 0 && (!exists || fchmod(file, old.st_mode & 07777) == 0) && write_all(file, content) &&
                  fsync(file) == 0 && std::rename(temporary.c_str(), path.c_str()) == 0;
  int error = errno;
  if (!ok && file >= 0) unlink(temporary.c_str());
  if (file >= 0) close(file);  // not sooner: it is locked until it has its name
  if (ok && sync_folder(path)) return;
  if (ok) error = errno;
  refuse(std::strerror(error));
}

void write_folder(const std::string& given, const std::function<void(const std::string& folder)>& fill) {
  const auto require = [&](bool ok) {
    if (!ok) throw std::runtime_error("cannot write " + given + ": " + std::strerror(errno));
  };
  std::error_code none;
  const std::string path = fs::weakly_canonical(given, none).string(), previous = path + ".previous";
  remove_leftovers(path);
  std::string temporary;
  const int lock = create_beside(path, temporary, true);
  require(lock >= 0);
  struct End {
    ~End() {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      close(lock);
    }
    const std::string& folder;
    int lock;
  } const end{temporary, lock};

  fill(temporary);
  if (swap_names(temporary, path)) {  // now it is the old one, not worth keeping when it is empty
    if (rmdir(temporary.c_str()) != 0 && !swap_names(temporary, previous)) fs::rename(temporary, previous, none);
  } else {
    if (rmdir(path.c_str()) != 0 && fs::exists(path, none)) {
      fs::remove_all(previous, none);
      require(std::rename(path.c_str(), previous.c_str()) == 0);
    }
    require(std::rename(temporary.c_str(), path.c_str()) == 0);
  }
  require(sync_folder(path));
}

}  // namespace tapegrad
