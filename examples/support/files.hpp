// Files as every program writes them: whole or not at all.
#pragma once

#include <stdexcept>
#include <string>

namespace examples {

/// The user asked for something that cannot be done: `run` prints the message as one line and exits 2.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Writes `content` beside `path`, syncs it to the disk and renames it, so that `path` never holds half a file.
/// Throws std::runtime_error (the old file is untouched) when that fails.
void write_file(const std::string& path, const std::string& content);

/// Creates `folder` and those above it where missing, and proves by a probe file that one can write there.
/// Throws BadInput when one cannot. Call it before the work starts.
void prepare_output_folder(const std::string& folder);

}  // namespace examples
