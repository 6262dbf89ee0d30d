#include "optim/optimizer.hpp"

#include <algorithm>
#include <limits>

namespace TAPEGRAD::optim {

Optimizer::Optimizer(const char* name, std::vector<Group> groups, double learning_rate, double weight_decay,
                     std::vector<const char*> arrays)
    : name_(name), names_(std::move(arrays)) {
  require_not_negative(learning_rate, "learning_rate");
  require_not_negative(weight_decay, "weight_decay");
  for (const Group& group : groups) {
    const double rate = group.learning_rate.value_or(learning_rate);
    const double decay = group.weight_decay.value_or(weight_decay);
    require_not_negative(rate, "learning_rate");
    require_not_negative(decay, "weight_decay");
    for (const Parameter& parameter : group.parameters) {
      const std::size_t i = slots_.size();
      require(parameter.defined(), name_, "every parameter must be defined; undefined is number", i);
      for (std::size_t j = 0; j < i; ++j) {
        if (!parameter.same_as(slots_[j].parameter)) continue;
        refuse(name_, "a parameter must be listed once", "it at positions " + to_text(j) + " and " + to_text(i));
      }
      slots_.push_back({parameter, rates_.size(), 0, std::vector<Array>(names_.size())});
    }
    rates_.push_back({rate, decay, rate});
  }
  require(!slots_.empty(), name_, "there must be a parameter");
}

void Optimizer::step() {
  bool any = false;
  for (const Slot& slot : slots_) {
    if (!slot.parameter.has_grad()) continue;
    any = true;
    require(slot.parameter.grad().shape() == slot.parameter.shape(), name_,
            "a gradient must have its parameter's shape", slot.parameter.grad().shape(), slot.parameter.shape());
    for (const Array& array : slot.arrays) {
      require(slot.steps == 0 || array.shape() == slot.parameter.shape(), name_,
              "a parameter's shape must stay as it was at the first step", slot.parameter.shape(), array.shape());
    }
  }
  require(any, name_, "no parameter has a gradient (was a Tape open?)");
  for (Slot& slot : slots_) {  // all memory is taken before anything changes
    if (!slot.parameter.has_grad() || slot.steps > 0) continue;
    for (Array& array : slot.arrays) array = Array(slot.parameter.shape(), Real(0));
  }
  for (Slot& slot : slots_) {
    if (!slot.parameter.has_grad()) continue;
    ++slot.steps;
    update(slot, rates_[slot.group]);
  }
}

void Optimizer::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.zero_grad();
}

void Optimizer::set_learning_rate(double rate) {
  require_not_negative(rate, "learning_rate");
  for (Rates& rates : rates_) rates.learning = rate;
}

void Optimizer::set_learning_rate(double rate, std::size_t group) {
  require_not_negative(rate, "learning_rate");
  rates(group);
  rates_[group].learning = rate;
}

void Optimizer::scale_learning_rates(double factor) {
  require_not_negative(factor, "the learning rates' factor");
  for (const Rates& rates : rates_) require_not_negative(factor * rates.initial, "learning_rate");
  for (Rates& rates : rates_) rates.learning = factor * rates.initial;
}

std::vector<Parameter> Optimizer::parameters() const {
  std::vector<Parameter> all;
  for (const Slot& slot : slots_) all.push_back(slot.parameter);
  return all;
}

State Optimizer::state() const {
  State state;
  state.texts["kind"] = name_;
  state.set_count("groups", rates_.size());
  for (std::size_t g = 0; g < rates_.size(); ++g) {
    const std::string group = "group." + std::to_string(g);
    state.set_number(group + ".learning_rate", rates_[g].learning);
    state.set_number(group + ".initial_learning_rate", rates_[g].initial);
    state.set_number(group + ".weight_decay", rates_[g].decay);
  }
  state.set_count("parameters", slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    state.set_count(std::to_string(i) + ".step", slots_[i].steps);
    if (slots_[i].steps == 0) continue;
    for (std::size_t k = 0; k < names_.size(); ++k) state.arrays.emplace_back(array_name(i, k), slots_[i].arrays[k]);
  }
  return state;
}

void Optimizer::load_state(const State& state) {
  const auto kind = state.texts.find("kind");
  require(kind != state.texts.end() && kind->second == name_, name_, "the state must be of the same kind of optimiser",
          kind == state.texts.end() ? "none" : in_quotes(kind->second));
  require(state.count("groups") == rates_.size(), name_, "the state must have as many groups", state.count("groups"),
          rates_.size());
  require(state.count("parameters") == slots_.size(), name_, "the state must have as many parameters",
          state.count("parameters"), slots_.size());

  std::vector<Rates> rates;
  for (std::size_t g = 0; g < rates_.size(); ++g) {
    const std::string group = "group." + std::to_string(g);
    rates.push_back({state.number(group + ".learning_rate"), state.number(group + ".weight_decay"),
                     state.number(group + ".initial_learning_rate")});
    require_not_negative(rates.back().learning, "learning_rate");
    require_not_negative(rates.back().decay, "weight_decay");
    require_not_negative(rates.back().initial, "initial_learning_rate");
  }
  std::vector<Slot> slots = slots_;
  std::vector<std::pair<std::string, Shape>> expected;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].steps = state.count(std::to_string(i) + ".step");
    require(slots[i].steps < std::uint64_t{1} << 63, name_, "the number of steps must be below 2^63", slots[i].steps);
    if (slots[i].steps == 0) continue;
    for (std::size_t k = 0; k < names_.size(); ++k) expected.emplace_back(array_name(i, k), slots[i].parameter.shape());
  }
  require_arrays(name_, state, expected, true);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].steps == 0) continue;
    for (std::size_t k = 0; k < names_.size(); ++k) {
      const std::string name = array_name(i, k);
      slots[i].arrays[k] = *state.find(name);
      if (name.find("sq") == std::string::npos) continue;  // exp_avg_sq and square_avg, whose roots are taken
      require(std::none_of(slots[i].arrays[k].begin(), slots[i].arrays[k].end(), [](Real x) { return x < 0; }), name_,
              "means of squares must not be negative", in_quotes(name));
    }
  }
  rates_ = std::move(rates);
  slots_ = std::move(slots);
}

void Optimizer::require_not_negative(double number, const char* what) const {
  require(number >= 0 && number <= std::numeric_limits<Real>::max(), name_,
          std::string(what) + " must be at least 0 and finite", number);
}

}  // namespace TAPEGRAD::optim
