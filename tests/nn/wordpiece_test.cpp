#include "nn/wordpiece.hpp"

#include "tests/nn/sentences.hpp"

using namespace tapegrad;
using nn::WordPiece;
using Tokens = std::vector<std::int64_t>;

namespace {

const std::vector<std::string> kSpecial = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

WordPiece with(std::vector<std::string> tokens) {
  tokens.insert(tokens.begin(), kSpecial.begin(), kSpecial.end());
  return WordPiece(std::move(tokens));
}

std::size_t different(const WordPiece& pieces, const char* key, std::size_t longest) {
  std::size_t wrong = 0, compared = 0;
  for (const auto& entry : sentences::read_json("sentences.json")) {
    const auto text = entry["text"].get<std::string>();
    const auto expected = entry[key].get<Tokens>();
    if (pieces(text, longest) != expected) {
      UNSCOPED_INFO("other tokens than the reference's: " << text);
      ++wrong;
    }
    ++compared;
  }
  CHECK(compared >= 200);
  return wrong;
}

}  // namespace

TEST_CASE("WordPiece's tokens are those of the tokenizers package", "[wordpiece]") {
  CHECK(different(WordPiece::from_file(sentences::kTiny + "/vocab.txt"), "tiny", 40) == 0);
  if (sentences::has_minilm()) {
    CHECK(different(WordPiece::from_file(sentences::kMiniLM + "/vocab.txt"), "minilm", 256) == 0);
  }
}

TEST_CASE("WordPiece takes the longest piece, and an unknown word as a whole", "[wordpiece]") {
  const WordPiece pieces = with({"un", "##aff", "##able", "##a", "una", ",", "able"});
  CHECK(pieces("unaffable", 9) == Tokens{2, 1, 3});  // una, then nothing that begins with ff: no going back
  CHECK(pieces("UnABLE, un\u00e0", 9) == Tokens{2, 1, 10, 9, 3});
  CHECK(pieces("Able", 9) == Tokens{2, 11, 3});
  CHECK(pieces("", 2) == Tokens{2, 3});
  CHECK(pieces("un un un", 4) == Tokens{2, 5, 5, 3});
  CHECK(pieces("un[MASK]un[mask]", 20) == Tokens{2, 5, 4, 5, 1, 1, 1, 3});
  CHECK(pieces.size() == 12);
  CHECK(pieces.pad() == 0);
}

TEST_CASE("WordPiece says where a text is not UTF-8", "[wordpiece]") {
  const WordPiece pieces = with({"a"});
  const auto says = [&](const std::string& text, const std::string& where) {
    CHECK_THROWS_WITH(pieces(text, 8), "[WordPiece] the text must be UTF-8; got byte " + where);
  };
  says("a\xff", "1");
  says("\x80", "0");
  says("a\u00e9\xc3", "3");                    // cut
  says("a b c d e f g h i j \xe4\xb8", "20");  // behind what fits
  says("\xc0\xaf", "0");                       // overlong
  says("ab\xed\xa0\x80", "2");                 // half a surrogate pair
  says("\xf4\x90\x80\x80", "0");               // above U+10FFFF
  CHECK_THROWS_WITH(pieces("a", 1), Catch::Matchers::ContainsSubstring("room for [CLS] and [SEP]"));
}

TEST_CASE("WordPiece takes texts of any length", "[wordpiece]") {
  const WordPiece pieces = with({"a"});
  CHECK(pieces(std::string(10'000'000, 'a'), 256) == Tokens{2, 1, 3});
  std::string words;
  for (int i = 0; i < 3'000'000; ++i) words += "a ";
  CHECK(pieces(words, 256).size() == 256);
}

TEST_CASE("WordPiece takes marks in their canonical order, in a time by their number", "[wordpiece]") {
  const std::string below = "\u1df9", above = "\u1dfb";  // kept: younger than Unicode 8
  const WordPiece pieces = with({"ab", "a" + below + above});
  CHECK(pieces("a" + below + above, 8) == Tokens{2, 6, 3});
  CHECK(pieces("a" + above + below, 8) == Tokens{2, 6, 3});
  CHECK(pieces("\u00e1" + above + "\u0323" + below, 8) == Tokens{2, 6, 3});
  for (const char* letter : {"\u1885", "\u1886", "\ua9bd"}) {  // a mark since
    CHECK(pieces("a" + std::string(letter) + "b", 8) == Tokens{2, 1, 3});
  }
  CHECK(pieces("ab\U000111c9ab", 8) == Tokens{2, 5, 1, 5, 3});  // punctuation then
  std::string marks;
  for (int i = 0; i < 300'000; ++i) marks += "\u0301\u0323";
  CHECK(pieces("a" + marks + "b", 8) == Tokens{2, 5, 3});
}

TEST_CASE("WordPiece refuses bad vocabularies", "[wordpiece]") {
  CHECK_THROWS_WITH(WordPiece({}), Catch::Matchers::ContainsSubstring("must have the token; got [PAD]"));
  CHECK_THROWS_WITH(WordPiece({"[PAD]", "[UNK]", "[CLS]"}), Catch::Matchers::ContainsSubstring("got [SEP]"));
  CHECK_THROWS_WITH(with({"a", "b", "a"}), Catch::Matchers::ContainsSubstring("only once; got \"a\""));
  CHECK_THROWS_WITH(with({"\xff"}), Catch::Matchers::ContainsSubstring("a token must be UTF-8; got 5"));
  for (const char* path : {"/none", "/tmp", "/dev/zero"}) {
    check_refused([&] { WordPiece::from_file(path); },
                  "\"" + std::string(path) + "\"] the vocabulary must be a plain file that can be read");
  }
}
