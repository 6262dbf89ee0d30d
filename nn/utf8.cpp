#include "nn/utf8.hpp"

#include <algorithm>

namespace tapegrad::utf8 {

Character first(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {0, 0};
  char32_t code = lead & (0x7Fu >> bytes);
  for (const char c : text.substr(1, bytes - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (byte & 0x3Fu);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {0, 0};
  return {code, bytes};
}

std::size_t valid_bytes(std::string_view text) {
  std::size_t valid = 0;
  while (valid < text.size()) {
    const std::size_t bytes = first(text.substr(valid)).bytes;
    if (bytes == 0) break;
    valid += bytes;
  }
  return valid;
}

std::u32string decoded(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) {
    const Character character = first(text);
    characters += character.bytes > 0 ? character.code : U'\uFFFD';
    text.remove_prefix(std::max<std::size_t>(character.bytes, 1));
  }
  return characters;
}

std::string encoded(char32_t code) {
  const auto byte = [](char32_t bits) { return static_cast<char>(bits); };
  const auto next = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), next(0)};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), next(6), next(0)};
  return {byte(0xF0 | code >> 18), next(12), next(6), next(0)};
}

}  // namespace tapegrad::utf8
