// How good a translation is: BLEU.
#pragma once

#include <algorithm>
#include <cmath>

#include "examples/translate/corpus.hpp"

namespace translate {

/// BLEU as D2L defines it, from 0 to 1: exp(min(0, 1 - reference / found)), with their lengths, times the product over
/// n = 1 ... k of p_n^(1/2^n), p_n being the part of the n-grams found that the reference has too, each as often as
/// there. A text shorter than k counts its own n-grams only.
inline double bleu(const Tokens& found, const Tokens& reference, std::size_t k) {
  if (found.empty()) return 0;
  const double lengths = static_cast<double>(reference.size()) / static_cast<double>(found.size());
  double score = std::exp(std::min(0.0, 1 - lengths));
  const auto part = [](const Tokens& tokens, std::size_t first, std::size_t n) {
    const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(first);
    return Tokens(at, at + static_cast<std::ptrdiff_t>(n));
  };
  for (std::size_t n = 1; n <= std::min(k, found.size()); ++n) {
    std::map<Tokens, std::size_t> left;
    for (std::size_t i = 0; i + n <= reference.size(); ++i) ++left[part(reference, i, n)];
    std::size_t matches = 0;
    for (std::size_t i = 0; i + n <= found.size(); ++i) {
      const auto match = left.find(part(found, i, n));
      if (match == left.end() || match->second == 0) continue;
      --match->second;
      ++matches;
    }
    score *= std::pow(static_cast<double>(matches) / static_cast<double>(found.size() - n + 1),
                      std::pow(0.5, static_cast<double>(n)));
  }
  return score;
}

}  // namespace translate
