/// The safetensors format: a length of 8 bytes (little-endian), a header of JSON, the arrays' bytes one after the
/// other. https://huggingface.co/docs/safetensors
#pragma once

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

}  // namespace TAPEGRAD::nn
