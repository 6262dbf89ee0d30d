/// SentenceEncoder: sentences as vectors, whose inner products say how close the sentences are in meaning. Needs ICU;
/// without it the library has none, and this header is not installed.
///
///   nn::SentenceEncoder encoder("minilm");  // the folder of a model
///   const Array x = encoder({"A man plays a guitar.", "Someone makes music."});  // (2,384), rows of norm 1
#pragma once

#include "nn/bert.hpp"
#include "nn/wordpiece.hpp"

namespace TAPEGRAD::nn {

/// A model of sentence-transformers' that is an uncased Bert with mean pooling and normalisation, as all-MiniLM-L6-v2.
/// Its folder has config.json, vocab.txt and model.safetensors; of the files that may be there besides, the longest
/// text is taken from sentence_bert_config.json, and others say whether the model is one of this kind.
class SentenceEncoder {
 public:
  using Tokens = std::vector<std::int64_t>;

  /// Refuses, in one line that names the file, what is missing, is no such file, is of another kind of model, or
  /// doesn't fit the others, and weights that are not finite. Takes memory for the weights, in proportion to their
  /// file, and they are read once.
  explicit SentenceEncoder(const std::string& folder);

  /// The sentences' embeddings (N,E) in their order: rows of norm 1. `batch` of them at a time, those of like length
  /// together, so that memory is for one batch. Refuses a text that is not UTF-8, and a batch of 0. Throws
  /// std::runtime_error where weights are such that an embedding doesn't have that norm.
  Array operator()(const std::vector<std::string>& sentences, std::size_t batch = 32);

  /// The same of texts that are tokens already; `done` is told how many are, after each batch.
  Array operator()(const std::vector<Tokens>& sentences, std::size_t batch = 32,
                   const std::function<void(std::size_t)>& done = {});

  /// The tokens of a text, at most longest() of them.
  Tokens tokens(std::string_view text) const { return words_(text, longest_); }

  /// One batch (B,E), on the tape where there is one: to train by.
  Tensor embed(const std::vector<Tokens>& sentences);

  /// Writes a folder that this, and PyTorch, reads: what the weights are now, and the files above, config.json last,
  /// without which none reads it. Throws std::runtime_error where it can't be written; `write_folder` keeps an old one.
  void save(const std::string& folder) const;

  Bert& bert() { return bert_; }
  const WordPiece& words() const { return words_; }
  std::size_t longest() const { return longest_; }

 private:
  std::string config_;  // the file's text
  WordPiece words_;
  std::size_t longest_;
  Rng rng_{0};
  Bert bert_;
};

}  // namespace TAPEGRAD::nn
