// UTF-8: characters as numbers, and back. The same for float and double.
#pragma once

#include <string>
#include <string_view>

namespace tapegrad::utf8 {

/// A character: its code point, and how many bytes it has; 0 bytes where the bytes are not UTF-8.
struct Character {
  char32_t code;
  std::size_t bytes;
};

/// The first character of a text that is not empty.
Character first(std::string_view text);

/// Where a text ends to be UTF-8, in bytes; its size when all of it is.
std::size_t valid_bytes(std::string_view text);

/// All characters of a text; U+FFFD for each byte that is not UTF-8.
std::u32string decoded(std::string_view text);

/// A code point's one to four bytes.
std::string encoded(char32_t code);

/// Whether it is a control character, U+007F to U+009F included.
constexpr bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

}  // namespace tapegrad::utf8
