// Where programs write, and what they refuse.
#pragma once

#include <stdexcept>
#include <string>

#include "nn/write_file.hpp"

namespace examples {

/// The user asked for something that cannot be done: `run` prints the message as one line and exits 2.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using tapegrad::write_file;

/// Creates `folder` and those above it where missing, and proves by a probe file that one can write there.
/// Throws BadInput when one cannot. Call it before the work starts.
void prepare_output_folder(const std::string& folder);

}  // namespace examples
