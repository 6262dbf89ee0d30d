// What is to be translated: dates of many forms, which are drawn, or a file of the user's.
#pragma once

#include <functional>

#include "autograd/random.hpp"
#include "examples/support/files.hpp"
#include "examples/translate/text.hpp"

namespace translate {

using tapegrad::Rng;

struct Pair {
  Tokens source, target;
};

struct Corpus {
  bool by_words = false;      ///< tokens are words, else characters
  Vocabulary source, target;  ///< what the net can read and write
  std::function<std::vector<Pair>(std::uint64_t step, std::size_t count, Rng&)> draw;  ///< a step's, for training
  std::vector<Pair> test;                                                              ///< for the score
  bool unseen = true;        ///< whether those are not trained on
  std::string fingerprint;   ///< another one means other texts
  std::size_t pairs = 0;     ///< to train on; 0: as many as are drawn
  std::size_t left_out = 0;  ///< pairs that were too long
};

inline Tokens tokenised(const std::string& text, bool by_words) { return by_words ? words(text) : characters(text); }

}  // namespace translate
