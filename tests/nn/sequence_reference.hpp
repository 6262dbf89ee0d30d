/// PyTorch's answers in reference/sequence.json: arrays filled by the formula of reference/sequence.py, and the
/// comparison of outputs and gradients.
#pragma once

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "nn/module.hpp"
#include "tests/check.hpp"

namespace sequence_reference {

using namespace tapegrad;

inline nlohmann::json read(const char* name) {
  std::ifstream file(TAPEGRAD_SOURCE_DIR "/tests/reference/sequence.json");
  return nlohmann::json::parse(file).at(name);
}

inline Array filled(std::size_t which, const Shape& shape, double scale = 1) {
  Array array = empty_array(shape);
  for (std::size_t i = 0; i < array.size(); ++i) {
    array.data()[i] =
        static_cast<Real>(std::cos(1.0 + static_cast<double>(i) + 10.0 * static_cast<double>(which)) * scale);
  }
  return array;
}

inline void compare(const nlohmann::json& expected, const Array& got) {
  const auto numbers = expected.get<std::vector<double>>();
  REQUIRE(numbers.size() == got.size());
  Array array = empty_array(got.shape());
  std::transform(numbers.begin(), numbers.end(), array.data(), [](double x) { return static_cast<Real>(x); });
  check_close(got, array, kDouble ? 1e-10 : 2e-5);
}

/// Fills the module's parameters and the inputs, calls, and compares with the answers.
inline void check(const nlohmann::json& answers, const nn::Module& module,
                  const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& call) {
  auto leaves = module.named_parameters();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].second.mutable_value() = filled(i, leaves[i].second.shape(), 0.5);
  }
  std::vector<Tensor> inputs;
  for (const auto& json : answers["input shapes"]) {
    const auto extents = json.get<std::vector<std::size_t>>();
    const std::size_t i = inputs.size();
    inputs.push_back(filled(10 + i, Shape(extents.begin(), extents.end())));
    leaves.emplace_back("input" + std::to_string(i), Parameter(inputs[i]));
  }
  Tape tape;
  const std::vector<Tensor> outputs = call(inputs);
  REQUIRE(outputs.size() == answers["outputs"].size());
  Tensor total = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    compare(answers["outputs"][i], outputs[i].value());
    total += sum(outputs[i] * Tensor(filled(20 + i, outputs[i].shape())));
  }
  tape.backward(total);
  REQUIRE(leaves.size() == answers["gradients"].size());
  for (const auto& [name, leaf] : leaves) {
    CAPTURE(name);
    compare(answers["gradients"][name], leaf.grad());
  }
}

}  // namespace sequence_reference
