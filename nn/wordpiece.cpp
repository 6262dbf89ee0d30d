#include "nn/wordpiece.hpp"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <filesystem>

#include "autograd/state.hpp"
#include "nn/file.hpp"
#include "nn/utf8.hpp"

namespace TAPEGRAD::nn {
namespace {

constexpr std::size_t kLongestWord = 100;          // characters; longer ones are unknown
constexpr std::size_t kLargestFile = 100'000'000;  // bytes
constexpr std::string_view kSpaces = " \t\n\r";    // all other blanks are found by ICU
constexpr std::uint8_t kUnicode = 8;               // the version of the reference's character classes
constexpr std::uint32_t kControls = U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK;

/// The bit of the character's class, among ICU's masks; 0 where it had none.
std::uint32_t class_of(UChar32 c) {
  switch (c) {  // whose class has changed since
    case 0x166d:
    case 0x111c9:
      return U_GC_PO_MASK;
    case 0x1734:
      return U_GC_MN_MASK;
    case 0x1885:
    case 0x1886:
      return U_GC_LO_MASK;
    case 0xa9bd:
      return U_GC_MC_MASK;
    default:
      break;
  }
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

/// The text without control characters, with spaces around ideographs, in canonical decomposition (NFD). ICU's own
/// normalize() takes time by the square of a run of marks.
std::u32string clean(std::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const decomposition = icu::Normalizer2::getNFDInstance(error);
  if (U_FAILURE(error)) throw std::runtime_error(std::string("[WordPiece] ICU failed: ") + u_errorName(error));
  std::u32string cleaned;
  icu::UnicodeString parts;
  while (!text.empty()) {
    const utf8::Character character = utf8::first(text);
    text.remove_prefix(character.bytes);
    const auto c = static_cast<UChar32>(character.code);
    if (c == 0xfffd || (class_of(c) & kControls) != 0) continue;
    const bool alone = is_ideograph(c);
    if (alone) cleaned += U' ';
    if (c >= 0xc0 && decomposition->getDecomposition(c, parts)) {
      for (std::int32_t at = 0; at < parts.length(); at = parts.moveIndex32(at, 1)) {
        cleaned += static_cast<char32_t>(parts.char32At(at));
      }
    } else {
      cleaned += character.code;
    }
    if (alone) cleaned += U' ';
  }
  const auto order = [](char32_t mark) { return u_getCombiningClass(static_cast<UChar32>(mark)); };
  for (auto end = cleaned.begin(); end != cleaned.end();) {
    const auto begin = std::find_if(end, cleaned.end(), order);
    end = std::find_if_not(begin, cleaned.end(), order);
    std::stable_sort(begin, end, [&](char32_t a, char32_t b) { return order(a) < order(b); });
  }
  return cleaned;
}

}  // namespace

WordPiece::WordPiece(std::vector<std::string> vocabulary, const std::string& who) : tokens_(std::move(vocabulary)) {
  words_.reserve(tokens_.size());
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& token = tokens_[i];
    require(utf8::valid_bytes(token) == token.size(), who, "a token must be UTF-8", i);
    const bool goes_on = token.size() > 2 && token.starts_with("##");
    const std::string_view letters = std::string_view(token).substr(goes_on ? 2 : 0);
    const bool added = (goes_on ? pieces_ : words_).emplace(letters, static_cast<std::int64_t>(i)).second;
    require(added, who, "a token can be given only once", in_quotes(token));
    longest_piece_ = std::max(longest_piece_, letters.size());
  }
  const auto number = [&](std::string_view token) {
    const auto found = words_.find(token);
    require(found != words_.end(), who, "the vocabulary must have the token", token);
    return found->second;
  };
  pad_ = number("[PAD]");
  unknown_ = number("[UNK]");
  first_ = number("[CLS]");
  last_ = number("[SEP]");
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    if (words_.contains(std::string_view(token))) special_.emplace_back(token, number(token));
  }
}

WordPiece WordPiece::from_file(const std::string& path) {
  const std::string who = "WordPiece " + in_quotes(path);
  std::ifstream file = open_file(path);
  std::error_code none;
  require(!file.is_open() || std::filesystem::file_size(path, none) <= kLargestFile, who,
          "the vocabulary must be at most 100 MB");
  std::vector<std::string> tokens;
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    tokens.push_back(std::move(line));
  }
  require(file.is_open() && file.eof(), who, "the vocabulary must be a plain file that can be read");
  return WordPiece(std::move(tokens), who);
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
  const std::u32string cleaned = clean(text);
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) add_word(word, to);
    word.clear();
  };
  for (std::size_t at = 0; at < cleaned.size() && to.size() < most; ++at) {
    auto c = static_cast<UChar32>(cleaned[at]);
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
