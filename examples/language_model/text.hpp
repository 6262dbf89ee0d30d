// A text as a language model needs it: numbered characters, in a part to learn from and a part to be examined on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/mask.hpp"
#include "autograd/random.hpp"
#include "examples/support/files.hpp"
#include "nn/fingerprint.hpp"
#include "nn/utf8.hpp"

namespace language_model {

namespace utf8 = tapegrad::utf8;
using examples::BadInput;
using Tokens = std::vector<std::int64_t>;  // places in a vocabulary
using Numbers = std::vector<double>;

/// The different characters of a text, in the order of their code points.
class Vocabulary {
 public:
  explicit Vocabulary(std::u32string text) : characters_(std::move(text)) {
    std::sort(characters_.begin(), characters_.end());
    characters_.erase(std::unique(characters_.begin(), characters_.end()), characters_.end());
  }

  std::size_t size() const { return characters_.size(); }

  /// Throws BadInput that starts with `what` for a character that is not there.
  Tokens tokens(const std::u32string& text, const std::string& what) const {
    Tokens found;
    for (const char32_t character : text) {
      const auto at = std::lower_bound(characters_.begin(), characters_.end(), character);
      if (at == characters_.end() || *at != character) {
        throw BadInput(what + " has the character '" + utf8::encoded(character) + "', and the text has not");
      }
      found.push_back(at - characters_.begin());
    }
    return found;
  }

  std::string text(const Tokens& tokens) const {
    std::string text;
    for (const std::int64_t token : tokens) text += utf8::encoded(characters_[static_cast<std::size_t>(token)]);
    return text;
  }

  /// The vocabulary as a text.
  std::string text() const {
    std::string text;
    for (const char32_t character : characters_) text += utf8::encoded(character);
    return text;
  }

 private:
  std::u32string characters_;
};

/// The first nine tenths of a text to learn from, the rest to be examined on.
struct Corpus {
  Vocabulary vocabulary;
  Tokens training = {};
  Tokens validation = {};
  std::string fingerprint = {};

  std::size_t size() const { return training.size() + validation.size(); }
};

/// Reads the file's first `limit` characters, or all for a limit of 0. Throws BadInput for one that is not there, not
/// text, empty, of one line or of one character only, or too short for that context.
inline Corpus read_corpus(const std::string& path, std::size_t limit, std::size_t context) {
  const std::string bytes = examples::read_text(path);
  std::u32string text = utf8::decoded(bytes);
  if (text.empty()) throw BadInput(path + ": is empty");
  if (limit > 0 && text.size() > limit) text.resize(limit);
  if (text.find_first_not_of(text[0]) == text.npos) throw BadInput(path + ": all characters are the same");
  if (text.find(U'\n', text.find_first_not_of(U'\n')) >= text.find_last_not_of(U'\n')) {
    throw BadInput(path + ": has one line only; a text of at least two is needed (fold breaks long lines)");
  }
  const std::size_t least = 10 * context + 1;  // then a tenth holds the context, and the character that comes next
  if (text.size() < least) {
    throw BadInput(path + ": has " + std::to_string(text.size()) + " characters; a context of " +
                   std::to_string(context) + " needs at least " + std::to_string(least));
  }
  Corpus corpus{Vocabulary(text)};
  corpus.fingerprint = std::to_string(tapegrad::fingerprint(bytes));
  corpus.training = corpus.vocabulary.tokens(text, path);
  const auto split = corpus.training.begin() + static_cast<std::ptrdiff_t>(text.size() * 9 / 10);
  corpus.validation.assign(split, corpus.training.end());
  corpus.training.erase(split, corpus.training.end());
  return corpus;
}

/// Cross-entropy in nats of the validation part for someone who knows how frequent each character is in the training
/// part, and nothing else (one is added to each count, so that none is 0).
inline double unigram_loss(const Corpus& corpus) {
  Numbers counts(corpus.vocabulary.size(), 1);
  for (const std::int64_t token : corpus.training) counts[static_cast<std::size_t>(token)] += 1;
  const auto total = static_cast<double>(corpus.training.size() + counts.size());
  double sum = 0;
  for (const std::int64_t token : corpus.validation) sum -= std::log(counts[static_cast<std::size_t>(token)] / total);
  return sum / static_cast<double>(corpus.validation.size());
}

/// Pieces of a text, (B,T) each: what is seen, and what comes next at each of its places.
struct Batch {
  tapegrad::Index seen;
  tapegrad::Index next;
};

inline Batch batch_at(const Tokens& tokens, const std::vector<std::size_t>& starts, std::size_t length) {
  const tapegrad::Shape shape{starts.size(), length};
  Batch batch{tapegrad::Index(shape), tapegrad::Index(shape)};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t* from = tokens.data() + starts[i];
    std::copy_n(from, length, batch.seen.data() + i * length);
    std::copy_n(from + 1, length, batch.next.data() + i * length);
  }
  return batch;
}

}  // namespace language_model
