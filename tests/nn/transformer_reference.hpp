/// What the tests of the Transformer and of the language model share: PyTorch's answers in reference/transformer.json,
/// and the check of all gradients of a model.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

#include "nn/embedding.hpp"
#include "nn/positional_encoding.hpp"
#include "nn/transformer.hpp"
#include "tests/check.hpp"

namespace transformer_reference {

using namespace tapegrad;
using Json = nlohmann::json;

inline const Json& reference() {
  static const Json content = [] {
    std::ifstream file(TAPEGRAD_SOURCE_DIR "/tests/reference/transformer.json");
    return Json::parse(file);
  }();
  return content;
}

/// How far losses of a training may be from PyTorch's in double, relative to them.
constexpr double kReplay = kDouble ? 1e-8 : 2e-3;

/// How far decoding by steps may be from decoding all at once.
constexpr double kIncremental = kDouble ? 1e-12 : 1e-5;

/// Elements scale cos(start + 0.7 i) in row-major order, as tests/reference/transformer.py has them.
inline Array fill(const Shape& shape, double start, double scale = 1) {
  Array array = empty_array(shape);
  for (std::size_t i = 0; i < array.size(); ++i) {
    array.data()[i] = static_cast<Real>(scale * std::cos(start + 0.7 * static_cast<double>(i)));
  }
  return array;
}

inline std::vector<std::string> names_of(const nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : module.named_parameters()) names.push_back(name);
  return names;
}

inline Array to_array(const Json& numbers, const Shape& shape) {
  REQUIRE(numbers.size() == element_count(shape));
  Array array = empty_array(shape);
  for (std::size_t i = 0; i < array.size(); ++i) array.data()[i] = static_cast<Real>(numbers[i].get<double>());
  return array;
}

inline Index to_index(const Json& numbers, const Shape& shape) {
  return Index(shape, numbers.get<std::vector<std::int64_t>>());
}

/// Gives every parameter the value that PyTorch started from; a tied one stands there once.
inline void start_from(const Json& start, const nn::Module& module) {
  std::size_t found = 0;
  for (auto [name, parameter] : module.named_parameters()) {
    if (!start.contains(name)) continue;
    parameter.mutable_value() = to_array(start[name], parameter.shape());
    ++found;
  }
  REQUIRE(found == start.size());
  REQUIRE(found == module.parameters().size());
}

/// Random numbers for all parameters: none is small, and no norm's weights are equal.
inline void randomize(const nn::Module& module, Rng& rng) {
  for (Parameter parameter : module.parameters()) parameter.mutable_value() = rng.normal(parameter.shape(), 0, 0.5);
}

/// The handles to its parameters that a module and those below it use.
inline std::vector<Parameter*> members_of(nn::Module& model) {
  std::vector<Parameter*> members;
  model.apply([&](nn::Module& part) {
    if (auto* linear = dynamic_cast<nn::Linear*>(&part))
      members.insert(members.end(), {&linear->weight, &linear->bias});
    if (auto* norm = dynamic_cast<nn::LayerNorm*>(&part)) members.insert(members.end(), {&norm->weight, &norm->bias});
    if (auto* table = dynamic_cast<nn::Embedding*>(&part)) members.push_back(&table->weight);
    if (auto* table = dynamic_cast<nn::LearnedPositionalEncoding*>(&part)) members.push_back(&table->weight);
    if (auto* attention = dynamic_cast<nn::MultiHeadAttention*>(&part))
      members.insert(members.end(), {&attention->in_proj_weight, &attention->in_proj_bias});
  });
  std::erase_if(members, [](const Parameter* parameter) { return !parameter->defined(); });
  return members;
}

/// Gradients of first and second order with respect to the inputs and all parameters, along random directions. For each
/// call the model's handles are pointed to the checker's Tensors, those of a shared parameter to the same one.
inline void check_model(nn::Module& model, std::vector<Tensor> inputs, const Function& call) {
  const std::size_t count = inputs.size();
  const std::vector<Parameter> parameters = model.parameters();
  const std::vector<Parameter*> members = members_of(model);
  REQUIRE(members.size() >= parameters.size());
  for (const Parameter& parameter : parameters) inputs.push_back(parameter.detach());
  const auto f = [&](const std::vector<Tensor>& x) {
    std::vector<Tensor> kept;
    for (Parameter* member : members) kept.push_back(*member);
    for (Parameter* member : members) {
      std::size_t i = 0;
      while (!parameters.at(i).same_as(*member)) ++i;
      static_cast<Tensor&>(*member) = x[count + i];
    }
    const Tensor y = call(x);
    for (std::size_t i = 0; i < members.size(); ++i) static_cast<Tensor&>(*members[i]) = kept[i];
    return y;
  };
  check_gradients(f, inputs, {.largest_by_element = 0, .directions = 2});
}

/// Positions [first, last) of x (B,T,...).
inline Tensor positions(const Tensor& x, std::size_t first, std::size_t last) {
  return slice(x, 1, static_cast<std::ptrdiff_t>(first), static_cast<std::ptrdiff_t>(last));
}

/// (B,n) of tokens: columns [first, last).
inline Index columns(const Index& tokens, std::size_t first, std::size_t last) {
  Index result(Shape{tokens.shape()[0], last - first});
  for (std::size_t b = 0; b < tokens.shape()[0]; ++b) {
    std::copy_n(tokens.data() + b * tokens.shape()[1] + first, last - first, result.data() + b * (last - first));
  }
  return result;
}

}  // namespace transformer_reference
