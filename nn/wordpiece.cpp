#include "nn/wordpiece.hpp"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "autograd/state.hpp"
#include "nn/file.hpp"
#include "nn/utf8.hpp"

namespace TAPEGRAD::nn {
namespace {

constexpr std::size_t kLongestWord = 100;        // characters; longer ones are unknown
constexpr std::size_t kLongestText = 1 << 28;    // bytes without a space: ICU counts in 32 bits
constexpr std::string_view kSpaces = " \t\n\r";  // all other blanks are found by ICU
constexpr std::uint8_t kUnicode = 8;             // the version of the reference's character classes
constexpr UChar32 kPunctuationThen = 0x166d;     // a symbol since Unicode 12
constexpr UChar32 kMarkThen = 0x1734;            // not a nonspacing one since Unicode 14
constexpr std::uint32_t kControls = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK;

/// The bit of the character's class, among ICU's masks; 0 where it had none.
std::uint32_t class_of(UChar32 c) {
  if (c == kPunctuationThen) return U_GC_PO_MASK;
  if (c == kMarkThen) return U_GC_MN_MASK;
  UVersionInfo age;
  u_charAge(c, age);
  return age[0] == 0 || age[0] > kUnicode ? 0 : U_GET_GC_MASK(c);
}

bool is_ideograph(UChar32 c) {
  const auto within = [c](UChar32 first, UChar32 last) { return c >= first && c <= last; };
  return within(0x4e00, 0x9fff) || within(0x3400, 0x4dbf) || within(0xf900, 0xfaff) || within(0x20000, 0x2a6df) ||
         within(0x2a700, 0x2b81f) || within(0x2b920, 0x2ceaf) || within(0x2f800, 0x2fa1f);
}

bool is_punctuation(UChar32 c) {
  const bool ascii = (c > 0x20 && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7f);
  return ascii || (c >= 0x80 && (class_of(c) & U_GC_P_MASK) != 0);
}

/// The text without control characters, with spaces around ideographs, decomposed.
icu::UnicodeString clean(std::string_view text) {
  icu::UnicodeString cleaned;
  while (!text.empty()) {
    const utf8::Character character = utf8::first(text);
    text.remove_prefix(character.bytes);
    const auto c = static_cast<UChar32>(character.code);
    if (c == 0xfffd || (class_of(c) & kControls) != 0) continue;
    const bool alone = is_ideograph(c);
    if (alone) cleaned.append(UChar32(' '));
    cleaned.append(c);
    if (alone) cleaned.append(UChar32(' '));
  }
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const decomposition = icu::Normalizer2::getNFDInstance(error);
  icu::UnicodeString decomposed;
  if (U_SUCCESS(error)) decomposition->normalize(cleaned, decomposed, error);
  if (U_FAILURE(error)) throw std::runtime_error(std::string("[WordPiece] ICU failed: ") + u_errorName(error));
  return decomposed;
}

}  // namespace

WordPiece::WordPiece(std::vector<std::string> vocabulary) : tokens_(std::move(vocabulary)) {
  words_.reserve(tokens_.size());
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& token = tokens_[i];
    require(utf8::valid_bytes(token) == token.size(), "WordPiece", "a token must be UTF-8", i);
    const bool goes_on = token.size() > 2 && token.starts_with("##");
    const std::string_view letters = std::string_view(token).substr(goes_on ? 2 : 0);
    const bool added = (goes_on ? pieces_ : words_).emplace(letters, static_cast<std::int64_t>(i)).second;
    require(added, "WordPiece", "a token can be given only once", in_quotes(token));
    longest_piece_ = std::max(longest_piece_, letters.size());
  }
  pad_ = number("[PAD]");
  unknown_ = number("[UNK]");
  first_ = number("[CLS]");
  last_ = number("[SEP]");
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (words_.contains(std::string_view(token))) special_.emplace_back(token, number(token));
  }
}

WordPiece WordPiece::from_file(const std::string& path) {
  std::ifstream file = open_file(path);
  std::vector<std::string> tokens;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    tokens.push_back(std::move(line));
  }
  require(file.is_open() && file.eof(), "WordPiece", "the vocabulary must be a file that can be read", in_quotes(path));
  return WordPiece(std::move(tokens));
}

std::int64_t WordPiece::number(std::string_view token) const {
  const auto found = words_.find(token);
  require(found != words_.end(), "WordPiece", "the vocabulary must have the token", token);
  return found->second;
}

std::vector<std::int64_t> WordPiece::operator()(std::string_view text, std::size_t longest) const {
  require(longest >= 2, "WordPiece", "there must be room for [CLS] and [SEP]", longest);
  const std::size_t valid = utf8::valid_bytes(text);
  require(valid == text.size(), "WordPiece", "the text must be UTF-8", std::string("byte ") + std::to_string(valid));

  std::vector<std::int64_t> tokens{first_};
  const std::size_t most = longest - 1;  // before the last one
  for (std::size_t at = 0; at < text.size() && tokens.size() < most;) {
    const std::size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    std::string_view part = text.substr(at, end - at);
    at = end + 1;
    for (std::size_t bracket = 0; (bracket = part.find('[', bracket)) != part.npos;) {
      const auto here = [&](const auto& special) { return part.substr(bracket).starts_with(special.first); };
      const auto special = std::find_if(special_.begin(), special_.end(), here);
      if (special == special_.end()) {
        ++bracket;
        continue;
      }
      add_plain(part.substr(0, bracket), tokens, most);
      tokens.push_back(special->second);
      part.remove_prefix(bracket + special->first.size());
      bracket = 0;
    }
    add_plain(part, tokens, most);
  }
  tokens.resize(std::min(tokens.size(), most));
  tokens.push_back(last_);
  return tokens;
}

/// Adds the tokens of a text without spaces, until there are enough.
void WordPiece::add_plain(std::string_view text, std::vector<std::int64_t>& to, std::size_t most) const {
  if (text.empty() || to.size() >= most) return;
  require(text.size() <= kLongestText, "WordPiece", "a text without a space must be at most 256 MiB", text.size());
  const icu::UnicodeString cleaned = clean(text);
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) add_word(word, to);
    word.clear();
  };
  for (std::int32_t at = 0; at < cleaned.length() && to.size() < most; at = cleaned.moveIndex32(at, 1)) {
    UChar32 c = cleaned.char32At(at);
    if ((class_of(c) & U_GC_MN_MASK) != 0) continue;
    c = u_tolower(c);
    if (u_isUWhiteSpace(c)) {
      end_word();
    } else if (is_punctuation(c)) {
      end_word();
      word += utf8::encoded(static_cast<char32_t>(c));
      end_word();
    } else {
      word += utf8::encoded(static_cast<char32_t>(c));
    }
  }
  end_word();
}

void WordPiece::add_word(std::string_view word, std::vector<std::int64_t>& to) const {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  const std::size_t before = to.size();
  bool known = static_cast<std::size_t>(std::count_if(word.begin(), word.end(), starts)) <= kLongestWord;
  for (std::size_t at = 0; known && at < word.size();) {
    const Numbers& numbers = at == 0 ? words_ : pieces_;
    std::size_t length = std::min(word.size() - at, longest_piece_);
    auto found = numbers.end();
    for (; length > 0; --length) {
      found = numbers.find(word.substr(at, length));
      if (found != numbers.end()) break;
    }
    known = length > 0;
    if (known) to.push_back(found->second);
    at += length;
  }
  if (known) return;
  to.resize(before);
  to.push_back(unknown_);
}

}  // namespace TAPEGRAD::nn
