#include "nn/utf8.hpp"

#include "tests/catch.hpp"

using namespace tapegrad;

TEST_CASE("UTF-8 there and back", "[utf8]") {
  const std::u32string all = {0x1, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
  std::string bytes;
  for (const char32_t code : all) bytes += utf8::encoded(code);
  CHECK(utf8::decoded(bytes) == all);
  CHECK(utf8::valid_bytes(bytes) == bytes.size());
  CHECK(utf8::decoded("a\xC3\u00E9") == U"a\uFFFD\u00E9");
  // A byte that goes on, too long, a surrogate, beyond the last one, cut off.
  for (const std::string bad :
       {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5", "\xE2\x82", "\xC3("}) {
    CHECK(utf8::first(bad).bytes == 0);
    CHECK(utf8::valid_bytes(bytes + bad + "a") == bytes.size());
    CHECK(utf8::decoded(bad + "a").substr(0, 1) == U"\uFFFD");
  }
}
