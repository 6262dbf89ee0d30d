/// WordPiece: texts as the tokens that BERT's uncased models read. Needs ICU; without it the library has no WordPiece,
/// and this header is not installed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograd/require.hpp"

namespace TAPEGRAD::nn {

/// Cuts words into the longest pieces that a vocabulary has, from the left (Wu et al., 2016), after BERT's clean-up
/// (Devlin et al., 2019): control characters are dropped, every CJK ideograph is a word, accents are stripped
/// (canonical decomposition without its nonspacing marks), letters become lower case, and every punctuation character
/// is a word. Pieces that go on with a word are "##...". A word that can't be made of pieces, or is longer than 100
/// characters, is [UNK].
///
/// The numbers are those of the `tokenizers` package with a BertNormalizer (lowercase=True), a BertPreTokenizer and a
/// WordPiece model, whose character classes are Unicode 8's: later characters are no marks and no punctuation. Only the
/// lower case of letters that are newer than the ICU may differ.
class WordPiece {
 public:
  /// The tokens in the order of their numbers, from 0. Refuses a list without [PAD], [UNK], [CLS] and [SEP], a token
  /// given twice, and one that is not UTF-8; `who` begins the message.
  explicit WordPiece(std::vector<std::string> vocabulary, const std::string& who = "WordPiece");

  /// From a file of one token a line, as BERT's vocab.txt. Refuses, and names it, one that is not such a list, is no
  /// plain file that can be read, or has more than 100 MB.
  static WordPiece from_file(const std::string& path);

  /// [CLS], the text's tokens, [SEP]; of these the first ones only, where there would be more than `longest` in all.
  /// [PAD], [UNK], [CLS], [SEP] and [MASK] within the text are these tokens. Refuses a text that is not UTF-8, naming
  /// the first byte that is not (from 0), and a `longest` below 2.
  std::vector<std::int64_t> operator()(std::string_view text, std::size_t longest) const;

  std::size_t size() const { return tokens_.size(); }
  const std::vector<std::string>& vocabulary() const { return tokens_; }
  std::int64_t pad() const { return pad_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Numbers = std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>>;

  void add_plain(std::string_view text, std::vector<std::int64_t>& to, std::size_t most) const;
  void add_word(std::string_view word, std::vector<std::int64_t>& to) const;

  std::vector<std::string> tokens_;
  Numbers words_;   // pieces that begin a word
  Numbers pieces_;  // those that go on, without the ##
  std::vector<std::pair<std::string, std::int64_t>> special_;
  std::int64_t pad_, unknown_, first_, last_;
  std::size_t longest_piece_ = 0;  // bytes
};

}  // namespace TAPEGRAD::nn
