#include "examples/support/files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "nn/utf8.hpp"

namespace examples {

namespace utf8 = tapegrad::utf8;

void prepare_output_folder(const std::string& folder) {
  if (folder.empty()) throw BadInput("the output folder's name is empty");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw BadInput("cannot create the output folder " + folder + ": " + error.message());
  if (!std::filesystem::is_directory(folder, error)) throw BadInput("the output folder " + folder + " is not a folder");
  if (access(folder.c_str(), W_OK | X_OK) != 0) throw BadInput("cannot write to the output folder " + folder);
}

void prepare_save(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const fs::path file = fs::weakly_canonical(path, error);
  if (error || !file.has_filename() || (fs::exists(status) && !fs::is_regular_file(status))) {
    throw BadInput("--save needs a plain file; got " + path);
  }
  if (file.filename().string().size() > 200) throw BadInput("--save: the file's name is too long");
  if (fs::is_directory(file.string() + ".previous", error)) throw BadInput(file.string() + ".previous: is a folder");
  prepare_output_folder(file.parent_path());
}

void prepare_save_folder(const std::string& path, const std::vector<std::string>& names) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path place = fs::weakly_canonical(path, error);
  if (error || !place.has_filename()) throw BadInput("--save needs a folder; got " + path);
  if (place.filename().string().size() > 200) throw BadInput("--save: the folder's name is too long");
  for (const fs::path& old : {place, fs::path(place.string() + ".previous")}) {
    const bool exists = fs::exists(fs::symlink_status(old, error));
    if (exists && !fs::is_directory(old, error)) throw BadInput("--save needs a folder; got " + old.string());
    for (fs::directory_iterator at(old, error), end; !error && at != end; at.increment(error)) {
      if (std::count(names.begin(), names.end(), at->path().filename()) > 0) continue;
      throw BadInput("--save needs a new folder, or an earlier one; " + at->path().string() + " is in the way");
    }
  }
  prepare_output_folder(place.parent_path());
  struct stat folder, parent;
  const bool both = stat(place.c_str(), &folder) == 0 && stat(place.parent_path().c_str(), &parent) == 0;
  if (both && folder.st_dev != parent.st_dev) {
    throw BadInput("--save needs a folder that can be renamed, and not where a file system begins: " + path);
  }
}

std::vector<std::string> with_endings(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    for (const char* ending : {".svg", ".png", ".csv", ".json"}) files.push_back(folder + "/" + name + ending);
  }
  return files;
}

void require_kept(const std::vector<std::string>& kept, const std::vector<std::string>& written) {
  std::error_code none;  // a place that can't be read is none
  std::set<std::filesystem::path> places;
  for (const std::string& path : written) places.insert(std::filesystem::weakly_canonical(path, none));
  for (const std::string& path : kept) {
    std::filesystem::path at = std::filesystem::weakly_canonical(path, none);
    for (; at.has_relative_path(); at = at.parent_path()) {
      if (places.contains(at)) throw BadInput(path + ": would be replaced by what this run writes");
    }
  }
}

std::string read_text(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) throw BadInput("a file's name is empty");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw BadInput(path + ": no such file");
  if (fs::is_directory(status)) throw BadInput(path + ": is a folder, not a file");
  if (!fs::is_regular_file(status)) throw BadInput(path + ": is not a plain file");  // a pipe or device may never end
  if (fs::file_size(path, error) > 100'000'000) throw BadInput(path + ": is larger than 100 MB");
  std::ifstream in = tapegrad::open_file(path);
  std::string text;
  try {
    text.assign(std::istreambuf_iterator<char>(in), {});
  } catch (const std::ios_base::failure&) {
    in.close();
  }
  if (!in.is_open()) throw BadInput(path + ": cannot be read");
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "\r\n") != 0) text[kept++] = text[i];
  }
  text.resize(kept);
  require_text(text, path);
  return text;
}

bool next_line(std::string& line, std::size_t most) {
  line.clear();
  for (char c = 0; std::cin.get(c) && c != '\n'; line += c) {
    if (line.size() == most)
      throw BadInput("the standard input: a line is longer than " + std::to_string(most) + " bytes");
  }
  if (std::ferror(stdin) != 0) throw BadInput("the standard input cannot be read");
  const bool found = std::cin.good() || !line.empty();
  if (line.ends_with('\r')) line.pop_back();
  return found;
}

void require_text(std::string_view bytes, const std::string& who, std::size_t line) {
  std::size_t byte = 1;
  while (!bytes.empty()) {
    const utf8::Character next = utf8::first(bytes);
    const bool control = utf8::is_control(next.code) && next.code != '\n' && next.code != '\t' && next.code != '\f';
    if (next.bytes == 0 || control) {
      throw BadInput(who + ", line " + std::to_string(line) + ", byte " + std::to_string(byte) +
                     (next.bytes == 0 ? ": is not UTF-8" : ": binary data; expected text"));
    }
    byte = next.code == '\n' ? 1 : byte + next.bytes;
    line += next.code == '\n';
    bytes.remove_prefix(next.bytes);
  }
}

}  // namespace examples
