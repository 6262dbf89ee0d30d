#include "examples/support/attention_maps.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "examples/support/files.hpp"

namespace examples {

void save_attention(const std::string& title, const std::vector<AttentionMaps>& layers, const std::string& path) {
  using nlohmann::json;
  json all = {{"title", title}, {"layers", json::array()}};
  for (const AttentionMaps& maps : layers) {
    json heads = json::array();
    const double* weight = maps.weights.data();
    for (std::size_t head = 0; head < maps.heads; ++head) {
      json rows = json::array();
      for (std::size_t q = 0; q < maps.queries.size(); ++q) {
        json row = json::array();
        for (std::size_t k = 0; k < maps.keys.size(); ++k) row.push_back(std::round(*weight++ * 1e5) / 1e5);
        rows.push_back(row);
      }
      heads.push_back(rows);
    }
    all["layers"].push_back({{"name", maps.name}, {"queries", maps.queries}, {"keys", maps.keys}, {"heads", heads}});
  }
  write_file(path, all.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace examples
