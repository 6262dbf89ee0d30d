// The texts of tests/reference/sentences.json, with their tokens, and where models are.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/check.hpp"

namespace sentences {

const std::string kReference = TAPEGRAD_SOURCE_DIR "/tests/reference/";
const std::string kTiny = kReference + "tiny_bert";
const std::string kMiniLM = TAPEGRAD_SOURCE_DIR "/minilm";  // what `make minilm` fetches

/// Whether the real model is there; a test that needs it says so where it is not.
inline bool has_minilm() {
  const bool there = std::filesystem::exists(kMiniLM + "/model.safetensors");
  if (!there) WARN("skipped: no model in " << kMiniLM << " (make minilm)");
  return there;
}

inline nlohmann::json read_json(const std::string& name) {
  std::ifstream file(kReference + name);
  REQUIRE(file.is_open());
  return nlohmann::json::parse(file);
}

}  // namespace sentences
