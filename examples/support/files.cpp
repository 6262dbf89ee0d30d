#include "examples/support/files.hpp"

#include <unistd.h>

#include <filesystem>

namespace examples {

void prepare_output_folder(const std::string& folder) {
  if (folder.empty()) throw BadInput("the output folder's name is empty");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw BadInput("cannot create the output folder " + folder + ": " + error.message());
  if (!std::filesystem::is_directory(folder)) throw BadInput("the output folder " + folder + " is not a folder");
  const std::string probe = folder + "/.probe." + std::to_string(getpid());
  try {
    write_file(probe, "");
  } catch (const std::runtime_error&) {
    throw BadInput("cannot write to the output folder " + folder);
  }
  unlink(probe.c_str());
}

}  // namespace examples
