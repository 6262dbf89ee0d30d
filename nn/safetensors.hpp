/// The safetensors format: a length of 8 bytes (little-endian), a header of JSON, the arrays' bytes one after the
/// other. https://huggingface.co/docs/safetensors
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "autograd/state.hpp"

namespace TAPEGRAD::nn {

/// The file that holds the state: its arrays as F32 (F64 where Real is double), its texts as "__metadata__". Refuses
/// names that are listed twice, or are called "__metadata__", and anything that is not UTF-8.
std::string to_safetensors(const State& state);

/// The state that such a file holds, arrays in the order of its header. F32 and F64 are converted to Real: exactly, but
/// for F64 where Real is float, which rounds and makes infinities of what is too large; other types are refused.
///
/// Refuses, in one line that starts with `who`, whatever is not exactly such a file: a header that is longer than the
/// file or 100 MB, is not strict JSON or says anything else than this format's, a name twice, more than 64 axes,
/// offsets that overlap, leave holes or do not fit the shapes and the file. Takes memory in proportion to the file
/// alone.
State from_safetensors(std::istream& in, const std::string& who = "safetensors");

/// The same, to places that are there already. `places` is given all names and shapes, in the header's order, once
/// they are known to be such a file's; it returns as many arrays of these shapes, or refuses before any is written to.
/// Arrays with `skipped` names may be of any type; they are not read, and `places` doesn't see them. Returns the texts.
using Places = std::function<std::vector<Array*>(const NamedShapes& arrays)>;
std::map<std::string, std::string> read_safetensors(std::istream& in, const std::string& who,
                                                    const std::vector<std::string>& skipped, const Places& places);

}  // namespace TAPEGRAD::nn
