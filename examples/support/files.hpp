// Files of the user's: where programs write, what they read, and what they refuse.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "nn/file.hpp"

namespace examples {

/// The user asked for something that cannot be done: `run` prints the message as one line and exits 2.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using tapegrad::write_file, tapegrad::write_folder;

/// Creates `folder` and those above it where missing, and proves by a probe file that one can write there.
/// Throws BadInput when one cannot. Call it before the work starts.
void prepare_output_folder(const std::string& folder);

/// Makes sure, before the work starts, that a file can be written at `path`: a new one, whose folder is created, or one
/// in place of a plain file. Throws BadInput, about --save, when none can.
void prepare_save(const std::string& path);

/// The same for a folder that `write_folder` shall replace: a new one, or one in which all files have such names.
void prepare_save_folder(const std::string& path, const std::vector<std::string>& names);

/// The pictures and tables that may have these names.
std::vector<std::string> with_endings(const std::string& folder, const std::vector<std::string>& names);

/// Throws BadInput when one of the `kept` files is at a place that will be written, or in such a folder. Empty names
/// are no file.
void require_kept(const std::vector<std::string>& kept, const std::vector<std::string>& written);

/// A file's text, without a byte order mark and with \n for \r\n. Throws BadInput, with the line and byte where there
/// is one, for what is missing, no plain file, larger than 100 MB, or refused by `require_text`.
std::string read_text(const std::string& path);

/// Takes a line from the standard input; false when there is none any more. Throws BadInput for one of more than `most`
/// bytes (a line may be endless), and for an input that can't be read.
bool next_line(std::string& line, std::size_t most);

/// Throws BadInput that starts with `who` for bytes that are not UTF-8, and for control characters but \n, \t and \f.
/// `line` is the number of the first one.
void require_text(std::string_view bytes, const std::string& who, std::size_t line = 1);

}  // namespace examples
