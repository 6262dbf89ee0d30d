// Texts as lists of tokens: words for pairs of sentences, characters for dates.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nn/utf8.hpp"

namespace translate {

namespace utf8 = tapegrad::utf8;
using Tokens = std::vector<std::string>;

/// The small letter of a Latin, Greek or Cyrillic capital; any other character as it is.
inline char32_t lower(char32_t c) {
  if (c >= U'A' && c <= U'Z') return c + 32;
  if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 32;
  if ((c >= 0x100 && c <= 0x137) || (c >= 0x14A && c <= 0x177)) return c == 0x130 ? U'i' : c | 1;
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E)) return c + c % 2;
  if (c == 0x178) return 0xFF;
  if (c >= 0x391 && c <= 0x3A9 && c != 0x3A2) return c + 32;
  if (c >= 0x410 && c <= 0x42F) return c + 32;
  if (c >= 0x400 && c <= 0x40F) return c + 80;
  return c;
}

// ---- tokens ---------------------------------------------------------------------------------------------------------

/// Every character, in small letters, by itself. The text must be UTF-8, as it must be for `words`.
inline Tokens characters(std::string_view text) {
  Tokens tokens;
  for (const char32_t c : utf8::decoded(text)) tokens.push_back(utf8::encoded(lower(c)));
  return tokens;
}

/// Words in small letters; each of , . ! ? begins a word, so that 3.5 is 3 and .5 (as D2L prepares its pairs).
inline Tokens words(std::string_view text) {
  Tokens tokens;
  bool inside = false;  // of a word, which the next character goes on with
  for (const std::string& c : characters(text)) {
    const bool mark = c == "," || c == "." || c == "!" || c == "?";
    const bool space = c == " " || c == "\t" || c == "\u00A0" || c == "\u202F";
    if (!space && (mark || !inside)) tokens.emplace_back();
    if (!space) tokens.back() += c;
    inside = !space;
  }
  return tokens;
}

/// The tokens as one text, `between` standing between them.
inline std::string joined(const Tokens& tokens, std::string_view between) {
  std::string text;
  for (const std::string& token : tokens) {
    if (&token != &tokens.front()) text += between;
    text += token;
  }
  return text;
}

// ---- numbers for tokens ---------------------------------------------------------------------------------------------

using Ids = std::vector<std::int64_t>;

/// Numbers for tokens: four with a meaning of their own, then those of a list.
class Vocabulary {
 public:
  static constexpr std::int64_t padding = 0;  ///< fills a batch's shorter texts
  static constexpr std::int64_t start = 1;    ///< before the first token of a translation
  static constexpr std::int64_t end = 2;      ///< behind the last token of either side
  static constexpr std::int64_t unknown = 3;  ///< any token that is not in the list

  explicit Vocabulary(Tokens list = {}) : list_(std::move(list)) {
    for (std::size_t i = 0; i < list_.size(); ++i) ids_.emplace(list_[i], unknown + 1 + static_cast<std::int64_t>(i));
  }

  const Tokens& list() const { return list_; }
  std::size_t size() const { return list_.size() + unknown + 1; }

  Ids ids(const Tokens& tokens) const {
    Ids result;
    for (const std::string& token : tokens) {
      const auto found = ids_.find(token);
      result.push_back(found == ids_.end() ? unknown : found->second);
    }
    return result;
  }

  Tokens tokens(const Ids& ids) const {
    Tokens result;
    for (const std::int64_t id : ids) {
      const char* const special[] = {"<pad>", "<start>", "<end>", "<unknown>"};
      result.push_back(id <= unknown ? special[id] : list_[static_cast<std::size_t>(id - unknown - 1)]);
    }
    return result;
  }

 private:
  Tokens list_;
  std::map<std::string, std::int64_t> ids_;
};

}  // namespace translate
