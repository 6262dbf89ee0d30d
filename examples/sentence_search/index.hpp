// The lines of a text with their embeddings, in a file, and the lines that are closest to a question.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "examples/support/checkpoint.hpp"
#include "examples/support/program.hpp"
#include "examples/support/show.hpp"
#include "nn/fingerprint.hpp"
#include "nn/sentence_encoder.hpp"
#include "nn/serialize.hpp"

namespace sentence_search {

using examples::BadInput, examples::show, examples::text;
using tapegrad::Array, tapegrad::Real, tapegrad::State;
using tapegrad::nn::SentenceEncoder;

constexpr std::size_t kLongestText = 95'000'000;  // bytes in JSON: the file's format allows for a header of 100 MB

/// What tells models apart.
inline std::string fingerprint(SentenceEncoder& encoder) {
  std::uint64_t all = tapegrad::fingerprint(std::to_string(encoder.longest()));
  for (const std::string& token : encoder.words().vocabulary()) all = tapegrad::fingerprint("\n" + token, all);
  for (const auto& parameter : encoder.bert().parameters()) {
    all = tapegrad::fingerprint(parameter.value().data(), parameter.size() * sizeof(Real), all);
  }
  return std::to_string(all);
}

inline std::vector<std::string> lines_of(const std::string& content) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    lines.push_back(content.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

inline bool is_blank(const std::string& line) { return line.find_first_not_of(" \t\f") == std::string::npos; }

/// The numbers, from 0, of the lines that are not blank.
inline std::vector<std::size_t> filled(const std::vector<std::string>& lines) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!is_blank(lines[i])) numbers.push_back(i);
  }
  return numbers;
}

/// What is known of a text.
struct Index {
  std::string content;
  std::vector<std::string> lines;
  std::vector<std::size_t> numbers;  // of the lines that have an embedding
  Array embeddings;                  // (their number, E), rows of norm 1
};

/// Embeds the lines of the file at `path` that are not blank.
inline Index make_index(SentenceEncoder& encoder, const std::string& path, std::size_t batch, bool quiet) {
  Index index;
  index.content = examples::read_text(path);
  if (tapegrad::in_quotes(index.content).size() > kLongestText) {
    throw BadInput(path + ": is too long for an index; 95 MB are possible");
  }
  index.lines = lines_of(index.content);
  index.numbers = filled(index.lines);
  if (index.numbers.empty()) throw BadInput(path + ": has no line that is not blank");
  std::vector<SentenceEncoder::Tokens> tokens;
  for (const std::size_t i : index.numbers) tokens.push_back(encoder.tokens(index.lines[i]));
  examples::Progress progress("line", tokens.size(), quiet);
  index.embeddings = encoder(tokens, batch, [&](std::size_t done) { progress.update(done); });
  return index;
}

inline void save_index(const Index& index, SentenceEncoder& encoder, const std::string& path) {
  State state;
  state.texts["program"] = "sentence_search";
  state.texts["model"] = fingerprint(encoder);
  state.texts["lines"] = index.content;
  state.arrays.emplace_back("embeddings", index.embeddings);
  tapegrad::nn::save_checkpoint(path, state);
}

/// Throws BadInput for a file that is damaged, no index, or one that was made by another model.
inline Index load_index(SentenceEncoder& encoder, const std::string& path) {
  return examples::reading(path, [&] {
    State state = tapegrad::nn::load_checkpoint(path);
    if (state.texts["program"] != "sentence_search" || !state.texts.contains("lines")) {
      throw BadInput(path + ": must be an index that sentence_search has saved");
    }
    if (state.text("model") != fingerprint(encoder)) throw BadInput(path + ": is an index of another model");
    Index index;
    index.content = std::move(state.texts["lines"]);
    examples::require_text(index.content, path + ": its text");
    index.lines = lines_of(index.content);
    index.numbers = filled(index.lines);
    tapegrad::require_arrays("index", state, {{"embeddings", {index.numbers.size(), encoder.bert().config().width}}},
                             true);
    if (index.numbers.empty()) throw BadInput(path + ": must have a line");
    index.embeddings = std::move(state.arrays[0].second);
    const std::size_t width = index.embeddings.shape()[1];
    for (std::size_t i = 0; i < index.numbers.size(); ++i) {
      const Real* const row = index.embeddings.data() + i * width;
      const Real squares = std::inner_product(row, row + width, row, Real(0));
      if (!(std::abs(squares - 1) < Real(1e-3))) throw BadInput(path + ": each row of numbers must have norm 1");
    }
    return index;
  });
}

/// "0.812  12  the line" for each of the `top` lines that are closest to the question, the closest first.
inline std::string answers(const Index& index, SentenceEncoder& encoder, const std::string& question, std::size_t top) {
  const Array row = encoder(std::vector<std::string>{question});
  const std::size_t width = row.size();
  std::vector<Real> scores(index.numbers.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = std::inner_product(row.data(), row.data() + width, index.embeddings.data() + i * width, Real(0));
  }
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  top = std::min(top, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
                    [&](std::size_t a, std::size_t b) { return std::pair(-scores[a], a) < std::pair(-scores[b], b); });
  std::string lines;
  for (std::size_t i = 0; i < top; ++i) {
    const std::size_t number = index.numbers[order[i]];
    lines += text("%6.3f %6zu  ", static_cast<double>(scores[order[i]]), number + 1) + index.lines[number] + '\n';
  }
  return lines;
}

}  // namespace sentence_search
