/// One parity case: an op, its inputs and attributes, and what PyTorch answers for it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "autograd/ops.hpp"

namespace parity {

using namespace tapegrad;
using Json = nlohmann::json;

/// The array that {"dtype": "f64", "shape": [...], "data": [...]} describes; "nan", "inf" and "-inf" are strings.
inline Array read_array(const Json& json) {
  const auto extents = json.at("shape").get<std::vector<std::size_t>>();
  const Json& data = json.at("data");
  Array array = empty_array(Shape(extents.begin(), extents.end()));
  require(data.size() == array.size(), "case", "data must have as many numbers as the shape says", data.size(),
          array.shape());
  for (std::size_t i = 0; i < data.size(); ++i) {
    array.data()[i] = data[i].is_string() ? std::stod(data[i].get<std::string>()) : data[i].get<Real>();
  }
  return array;
}

/// Inputs and attributes as an op's line in the table asks for them. It remembers what was asked for, so that an input
/// or attribute that the op does not know is found.
class Case {
 public:
  explicit Case(const Json& json) : attributes_(json.value("attrs", Json::object())) {
    for (const Json& input : json.at("inputs")) {
      const std::string dtype = input.at("dtype");
      const auto extents = input.at("shape").get<std::vector<std::size_t>>();
      const Shape shape(extents.begin(), extents.end());
      const Json& data = input.at("data");
      if (dtype == "f64") {
        Tensor x(read_array(input));
        inputs_.emplace_back(x.set_requires_grad());
        leaves.push_back(x);
      } else if (dtype == "i64") {
        inputs_.emplace_back(Index(shape, data.get<std::vector<std::int64_t>>()));
      } else if (dtype == "bool") {
        std::vector<bool> elements;  // written as true and false, or as 1 and 0
        for (const Json& element : data) elements.push_back(element.is_boolean() ? element.get<bool>() : element != 0);
        inputs_.emplace_back(Mask(shape, elements));
      } else {
        refuse("case", "dtype must be f64, i64 or bool", dtype);
      }
    }
  }

  std::size_t count() const { return inputs_.size(); }
  Tensor x(std::size_t i) { return input<Tensor>(i, "f64"); }
  Index index(std::size_t i) { return input<Index>(i, "i64"); }
  Mask mask(std::size_t i) { return input<Mask>(i, "bool"); }
  bool is_mask(std::size_t i) const { return i < count() && std::holds_alternative<Mask>(inputs_[i]); }
  std::vector<Tensor> all() {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < count(); ++i) tensors.push_back(x(i));
    return tensors;
  }

  template <class T>
  T get(const char* name) {
    return attribute(name).get<T>();
  }
  template <class T>
  T get_or(const char* name, T otherwise) {
    return attributes_.contains(name) ? get<T>(name) : otherwise;
  }
  bool is_null(const char* name) { return attribute(name).is_null(); }
  int axis() { return get<int>("axis"); }
  bool keepdim() { return get<bool>("keepdim"); }
  Axes axes(const char* name = "axis") { return get<std::vector<int>>(name); }
  Shape shape(const char* name = "shape") {
    const auto extents = get<std::vector<std::size_t>>(name);
    return Shape(extents.begin(), extents.end());
  }
  Reduction reduction() {
    const auto name = get<std::string>("reduction");
    static const std::map<std::string, Reduction> reductions = {{"none", Reduction::none},
                                                                {"mean", Reduction::mean},
                                                                {"sum", Reduction::sum},
                                                                {"batchmean", Reduction::batch_mean}};
    const auto found = reductions.find(name);
    require(found != reductions.end(), "case", "unknown reduction", name);
    return found->second;
  }
  /// PyTorch's class axis: the second, or the only one.
  int class_axis() { return x(0).rank() == 1 ? 0 : 1; }

  /// Refuses inputs and attributes that the op did not ask for.
  void require_all_used() const {
    require(used_inputs_.size() == count(), "case", "inputs that the op does not take", used_inputs_.size(), count());
    for (const auto& [name, value] : attributes_.items()) {
      require(used_attributes_.count(name) == 1, "case", "unknown attribute", name);
    }
  }

  std::vector<Tensor> leaves;  // the f64 inputs, in order

 private:
  template <class T>
  T input(std::size_t i, const char* dtype) {
    require(i < count() && std::holds_alternative<T>(inputs_[i]), "case", "the op takes another input there", i, dtype);
    used_inputs_.insert(i);
    return std::get<T>(inputs_[i]);
  }
  const Json& attribute(const char* name) {
    require(attributes_.contains(name), "case", "missing attribute", name);
    used_attributes_.insert(name);
    return attributes_[name];
  }

  std::vector<std::variant<Tensor, Index, Mask>> inputs_;
  Json attributes_;
  std::set<std::size_t> used_inputs_;
  std::set<std::string> used_attributes_;
};

}  // namespace parity
