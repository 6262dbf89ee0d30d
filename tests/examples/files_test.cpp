#include "examples/support/files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"

using namespace examples;

namespace {

const std::filesystem::path folder =
    std::filesystem::temp_directory_path() / ("tapegrad_files_test." + std::to_string(getpid()));

std::string refusal(const std::string& path) {
  try {
    read_text(path);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("a text is read without its mark, and what is none is refused by line and byte", "[files]") {
  std::filesystem::create_directory(folder);
  const std::string path = (folder / "text").string();
  const auto with = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  };
  CHECK(read_text(with("\xEF\xBB\xBF"
                       "a\r\nb\tc\f\xC3\xA9\n")) == "a\nb\tc\f\xC3\xA9\n");
  CHECK(read_text(with("")).empty());
  CHECK(refusal(with("ab\ncd\xFF")) == path + ", line 2, byte 3: is not UTF-8");
  CHECK(refusal(with("\xC3\xA9\xC3")) == path + ", line 1, byte 3: is not UTF-8");
  CHECK(refusal(with(std::string("a\n\0", 3))) == path + ", line 2, byte 1: binary data; expected text");
  CHECK(refusal(with("a\rb")) == path + ", line 1, byte 2: binary data; expected text");
  CHECK(refusal("") == "a file's name is empty");
  CHECK(refusal(folder.string()) == folder.string() + ": is a folder, not a file");
  CHECK(refusal(path + "x") == path + "x: no such file");
  CHECK(refusal("/dev/zero") == "/dev/zero: is not a plain file");
  const std::string pipe = (folder / "pipe").string();
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal(pipe) == pipe + ": is not a plain file");  // nobody writes: it would never end
  std::filesystem::resize_file(path, 100'000'001);
  CHECK(refusal(path) == path + ": is larger than 100 MB");
  std::filesystem::remove_all(folder);
}

TEST_CASE("what is read is not written over, by whatever name", "[files]") {
  std::filesystem::create_directory(folder);
  const std::string text = (folder / "text").string(), link = (folder / "link").string();
  std::ofstream(text) << "kept";
  std::filesystem::create_symlink("text", link);
  CHECK_THROWS_AS(require_kept({text}, {link}), BadInput);
  CHECK_THROWS_AS(require_kept({"", link}, {"none", (folder / "." / "text").string()}), BadInput);
  CHECK_NOTHROW(require_kept({text, ""}, {(folder / "other").string(), ""}));
  CHECK_NOTHROW(prepare_save(link));
  CHECK_THROWS_AS(prepare_save(folder.string()), BadInput);
  CHECK_THROWS_AS(prepare_save(text + "/below"), BadInput);
  CHECK_THROWS_AS(prepare_save((folder / std::string(201, 'x')).string()), BadInput);
  prepare_save((folder / "new" / "file").string());
  CHECK(std::filesystem::is_directory(folder / "new"));
  std::filesystem::remove_all(folder);
}
