// Attention weights to click through: reads what multihead_attention and translate save with --out, and writes one HTML
// page that needs nothing else, neither a server nor a network.
#include <nlohmann/json.hpp>

#include "examples/attention_view/page.hpp"
#include "examples/support/program.hpp"
#include "examples/support/show.hpp"

using examples::BadInput, examples::show, examples::text;
using nlohmann::json;

namespace {

json read(const std::string& path) {
  bool deep = false;  // such JSON is written by recursion
  const auto watch = [&](int depth, json::parse_event_t, const json&) { return !(deep |= depth > 20); };
  json maps = json::parse(examples::read_text(path), watch, false);
  if (deep) throw BadInput(path + ": its JSON must nest at most 20 deep");
  if (maps.is_discarded()) throw BadInput(path + ": is not JSON");
  return maps;
}

void need(bool so, const std::string& path, const std::string& what) {
  if (!so) throw BadInput(path + ": " + what);
}

bool is_text(const json& value) { return value.is_string(); }
bool is_weight(const json& value) {
  return value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1.0001;
}

/// A list of so many items, 0 for any number but none, each as it must be.
bool is_list(const json& value, std::size_t size, bool (*item)(const json&)) {
  return value.is_array() && !value.empty() && (size == 0 || value.size() == size) &&
         std::all_of(value.begin(), value.end(), item);
}

/// Refuses whatever the page could not show.
void check(const json& maps, const std::string& path) {
  need(maps.is_object() && maps.contains("title") && maps["title"].is_string(), path, "there must be a title");
  need(maps.contains("layers") && maps["layers"].is_array() && !maps["layers"].empty(), path, "there must be layers");
  for (std::size_t i = 0; i < maps["layers"].size(); ++i) {
    const json& layer = maps["layers"][i];
    const std::string where = text("layer %zu: ", i + 1);
    need(layer.is_object() && layer.contains("name") && layer["name"].is_string(), path, where + "it must have a name");
    for (const char* side : {"queries", "keys"}) {
      need(layer.contains(side) && is_list(layer[side], 0, is_text), path, where + side + " must be a list of texts");
    }
    need(layer.contains("heads") && layer["heads"].is_array() && !layer["heads"].empty(), path,
         where + "there must be heads");
    for (const json& head : layer["heads"]) {
      need(head.is_array() && head.size() == layer["queries"].size(), path, where + "a head must have a row per query");
      for (const json& row : head) {
        need(is_list(row, layer["keys"].size(), is_weight), path,
             where + "a row must have a weight from 0 to 1 for each key");
      }
    }
  }
}

/// The page with the maps in it. No "<" is left in them, so that no text of theirs can end the script they are in.
std::string page_of(const json& maps) {
  std::string data;
  for (const char c : maps.dump(-1, ' ', true, json::error_handler_t::replace)) {
    c == '<' ? data += "\\u003c" : data += c;
  }
  const std::string page = kPage, place = "@MAPS@";
  const std::size_t at = page.find(place);
  return page.substr(0, at) + data + page.substr(at + place.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  return examples::run(
      argc, argv, "attention_view", "Makes a page from attention weights that were saved: layers and heads by click.",
      [&](CLI::App& app) { app.add_option("FILE", path, "JSON from multihead_attention or translate")->required(); },
      [&](const examples::Common& common) {
        const json maps = read(path);
        check(maps, path);
        examples::prepare_output_folder(common.out);
        examples::write_file(common.out + "/attention_view.html", page_of(maps));
        show("  " + common.out + "/attention_view.html");
      });
}
