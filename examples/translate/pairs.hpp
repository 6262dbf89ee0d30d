// Pairs of sentences from a file: source TAB target, further columns ignored.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <sstream>

#include "examples/translate/corpus.hpp"
#include "examples/translate/settings.hpp"
#include "nn/fingerprint.hpp"

namespace translate {

using examples::BadInput;

/// The pairs in their order, those with a side too long left out and counted. Refuses, with the line's number, a line
/// without a tab and an empty side; blank lines are passed over.
inline std::vector<Pair> read_pairs(const std::string& path, const std::string& content, const Settings& settings,
                                    std::size_t& left_out) {
  std::istringstream text(content);
  std::vector<Pair> pairs;
  std::string line;
  for (std::size_t number = 1; std::getline(text, line); ++number) {
    const auto refuse = [&](const char* what) {
      throw BadInput(path + ", line " + std::to_string(number) + ": " + what);
    };
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos && words(line).empty()) continue;
    if (tab == std::string::npos) refuse("no tab between a source and its target");
    const std::size_t stop = std::min(line.find('\t', tab + 1), line.size());
    Pair pair{words(line.substr(0, tab)), words(line.substr(tab + 1, stop - tab - 1))};
    if (pair.source.empty()) refuse("the source, before the tab, is empty");
    if (pair.target.empty()) refuse("the target, behind the tab, is empty");
    if (std::max(pair.source.size(), pair.target.size()) > settings.longest) {
      ++left_out;
      continue;
    }
    pairs.push_back(std::move(pair));
    if (pairs.size() == settings.first) break;
  }
  if (pairs.size() < 2) {
    throw BadInput(path + ": at least 2 pairs of up to " + std::to_string(settings.longest) +
                   " words (--longest) are needed; got " + std::to_string(pairs.size()));
  }
  return pairs;
}

/// The words of one side that come often enough, frequent ones first.
inline Vocabulary frequent(const std::vector<Pair>& pairs, Tokens Pair::*side, std::size_t least) {
  std::map<std::string, std::size_t> counts;
  for (const Pair& pair : pairs) {
    for (const std::string& word : pair.*side) ++counts[word];
  }
  Tokens list;
  for (const auto& [word, count] : counts) {
    if (count >= least) list.push_back(word);
  }
  std::stable_sort(list.begin(), list.end(), [&](const auto& a, const auto& b) { return counts.at(a) > counts.at(b); });
  return Vocabulary(list);
}

/// The pairs of the file, the held-out sources' apart. A source goes to one side with all its translations.
inline Corpus pair_corpus(const std::string& path, const Settings& settings) {
  Corpus corpus;
  const std::string content = examples::read_text(path);
  const std::vector<Pair> all = read_pairs(path, content, settings, corpus.left_out);
  corpus.by_words = true;
  corpus.fingerprint = std::to_string(tapegrad::fingerprint(content));
  std::map<Tokens, bool> is_test;
  for (const Pair& pair : all) is_test.emplace(pair.source, false);
  const auto wanted = static_cast<std::size_t>(static_cast<double>(is_test.size()) * settings.held_out / 100);
  Rng rng(settings.seed ^ 0x9A125);
  const std::vector<std::int64_t> order = rng.permutation(is_test.size());
  std::size_t i = 0;
  for (auto& [source, test] : is_test) test = static_cast<std::size_t>(order[i++]) < wanted;

  auto known = std::make_shared<std::vector<Pair>>();
  for (const Pair& pair : all) (is_test.at(pair.source) ? corpus.test : *known).push_back(pair);
  corpus.unseen = wanted > 0;
  if (!corpus.unseen) corpus.test = *known;
  corpus.pairs = known->size();
  corpus.source = frequent(*known, &Pair::source, settings.min_frequency);
  corpus.target = frequent(*known, &Pair::target, settings.min_frequency);
  for (const auto& [side, vocabulary] : {std::pair("source", &corpus.source), {"target", &corpus.target}}) {
    if (vocabulary->list().size() < 2) {
      throw BadInput(path + ": the " + side + " must have at least 2 words that come " +
                     std::to_string(settings.min_frequency) + " times or more (--min-frequency); got " +
                     std::to_string(vocabulary->list().size()));
    }
  }

  // All pairs in a random order, then all in another one ...: the order depends on nothing but seed and step.
  corpus.draw = [known, seed = settings.seed, epoch = std::uint64_t(-1), order = std::vector<std::int64_t>()](
                    std::uint64_t step, std::size_t count, Rng&) mutable {
    std::vector<Pair> pairs;
    for (std::uint64_t at = step * count; at < (step + 1) * count; ++at) {
      if (epoch != at / known->size()) {
        epoch = at / known->size();
        order = Rng(seed + 0x9e3779b9u * (epoch + 1)).permutation(known->size());
      }
      pairs.push_back((*known)[static_cast<std::size_t>(order[at % known->size()])]);
    }
    return pairs;
  };
  return corpus;
}

}  // namespace translate
