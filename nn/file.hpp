// Files as everything here reads and writes them: plain ones, and whole or not at all.
#pragma once

#include <fstream>
#include <functional>
#include <string>

namespace tapegrad {

/// A file to read from; not open when it is not there, is no plain one (a pipe or a device may never end), or can't be
/// read.
std::ifstream open_file(const std::string& path);

/// Writes `content` beside `path`, syncs it to the disk and renames it, so that a kill or a power cut at any moment
/// leaves the old file or the new one, never half. A link is followed, and the old file's permissions stay. Removes
/// what killed programs left beside `path`. Throws std::runtime_error (the old file is untouched) when that fails. The
/// same for float and double.
void write_file(const std::string& path, const std::string& content);

/// The same for a folder: `fill` puts files into one beside `path`, which then takes its place. The old folder, unless
/// it is empty, becomes PATH.previous. Where the file system cannot exchange two names, a kill between two renames
/// leaves PATH.previous alone. Throws what `fill` throws, or std::runtime_error.
void write_folder(const std::string& path, const std::function<void(const std::string& folder)>& fill);

}  // namespace tapegrad
