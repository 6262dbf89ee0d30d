// Files as everything here writes them: whole or not at all.
#pragma once

#include <string>

namespace tapegrad {

/// Writes `content` beside `path`, syncs it to the disk and renames it, so that a kill or a power cut at any moment
/// leaves the old file or the new one, never half. A link is followed, and the old file's permissions stay. Removes
/// what killed programs left beside `path`. Throws std::runtime_error (the old file is untouched) when that fails. The
/// same for float and double.
void write_file(const std::string& path, const std::string& content);

}  // namespace tapegrad
