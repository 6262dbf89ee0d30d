/// What every optimiser has: groups of parameters with their rates, and what it remembers of each parameter.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "autograd/state.hpp"
#include "autograd/tensor.hpp"

namespace TAPEGRAD::optim {

/// Parameters that share a learning rate and a weight decay. What is left out is as in the optimiser's options:
///
///   optim::AdamW optimizer({{weights}, {biases, {}, 0.0}}, {.learning_rate = 1e-3});
struct Group {
  std::vector<Parameter> parameters;
  std::optional<double> learning_rate = {};
  std::optional<double> weight_decay = {};
};

/// Base of the optimisers. A training step is backward, step(), zero_grad().
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Changes every parameter that has a gradient, in place; the others stay. Refused when none has one. Infinities and
  /// NaN in gradients reach the parameters: nothing is hidden.
  void step();

  /// Drops the parameters' gradients.
  void zero_grad();

  std::size_t group_count() const { return rates_.size(); }
  double learning_rate(std::size_t group = 0) const { return rates(group).learning; }
  double weight_decay(std::size_t group = 0) const { return rates(group).decay; }

  /// Sets every group's learning rate, or that of one. Refuses a negative or non-finite rate.
  void set_learning_rate(double rate);
  void set_learning_rate(double rate, std::size_t group);

  /// Sets every group's learning rate to `factor` times the one that the group was made with: what a Schedule gives.
  void scale_learning_rates(double factor);

  /// Every parameter, in the order of the groups.
  std::vector<Parameter> parameters() const;

  /// What a checkpoint needs to go on bit for bit: the rates of every group, and for the i-th parameter the number of
  /// its steps ("i.step") and its arrays under PyTorch's names ("i.exp_avg"). Other settings are the program's.
  State state() const;

  /// Goes on from such a state. Refuses, before anything changes, one of another kind of optimiser or of other groups,
  /// and lists every array that is missing, unexpected or wrongly shaped; and one with negative means of squares.
  void load_state(const State& state);

 protected:
  struct Rates {
    double learning;
    double decay;
    double initial;  // the learning rate that factors refer to
  };

  /// A parameter and what is remembered of it.
  struct Slot {
    Parameter parameter;
    std::size_t group;
    std::uint64_t steps = 0;    // those in which it had a gradient
    std::vector<Array> arrays;  // as many as there are names; zeros before the first step
  };

  /// Refuses an empty list, an undefined parameter, one that is listed twice (tied weights are one parameter, to be
  /// listed and updated once), and rates that are negative or not finite. `arrays` are the names of what is remembered.
  Optimizer(const char* name, std::vector<Group> groups, double learning_rate, double weight_decay,
            std::vector<const char*> arrays);

  /// Changes the slot's parameter by its gradient; `steps` counts this step already.
  virtual void update(Slot& slot, const Rates& rates) = 0;

  void require_not_negative(double number, const char* what) const;

 private:
  const Rates& rates(std::size_t group) const {
    require(group < rates_.size(), name_, "there must be a group of that number", group);
    return rates_[group];
  }
  std::string array_name(std::size_t slot, std::size_t array) const {
    return std::to_string(slot) + "." + names_[array];
  }

  const char* name_;
  std::vector<const char*> names_;
  std::vector<Rates> rates_;
  std::vector<Slot> slots_;
};

}  // namespace TAPEGRAD::optim
