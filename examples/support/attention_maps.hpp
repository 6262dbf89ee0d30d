// Attention weights as files that attention_view reads.
#pragma once

#include <string>
#include <vector>

namespace examples {

/// What every head of one layer looks at.
struct AttentionMaps {
  std::string name;
  std::vector<std::string> queries, keys;
  std::size_t heads;
  std::vector<double> weights;  // (heads,queries,keys), each row summing to 1 or all zeros
};

/// Writes JSON: {"title": ..., "layers": [{"name": ..., "queries": [...], "keys": [...], "heads": [[[...]]]}]}.
void save_attention(const std::string& title, const std::vector<AttentionMaps>& layers, const std::string& path);

}  // namespace examples
