/// Module: what owns parameters, and other modules, by name.
///
///   struct Mlp : nn::Module {
///     nn::Linear hidden = child<nn::Linear>("hidden", 2, 8);
///     nn::Linear out = child<nn::Linear>("out", 8, 1);
///     Parameter scale = param("scale", ones({1}));
///     Tensor operator()(const Tensor& x) {
///       const NamedScope name = named_scope();  // for who looks at the tape; may be left out
///       return scale * out(relu(hidden(x)));
///     }
///   };
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autograd/named_scope.hpp"
#include "autograd/ops.hpp"

namespace TAPEGRAD::nn {

/// Base of everything that learns. A member that is made by `param` or `child` registers itself where it is declared; a
/// plain member, `nn::Linear a{2, 3};`, does not: neither optimiser nor checkpoint sees its parameters. A module stays
/// where it was made, since its parent points to it. Not for use by several threads at once.
class Module {
 public:
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// Every parameter with its dotted name ("encoder.layers.0.weight"), in the order of declaration. A parameter that is
  /// shared comes under each of its names.
  std::vector<std::pair<std::string, Parameter>> named_parameters() const;

  /// Every parameter once, in the order of declaration: what an optimiser takes.
  std::vector<Parameter> parameters() const;

  /// The number of elements of all parameters, a shared one counted once.
  std::size_t parameter_count() const;

  /// Drops every parameter's gradient.
  void zero_grad();

  /// Tells this module and all below it whether they are being trained (dropout works only then). Modules start in
  /// training.
  void train(bool training = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  /// Calls f with every module below this one, then with this one, children before their parents. A module that is
  /// registered twice is visited twice. To set first values by kind: `if (auto* linear = dynamic_cast<Linear*>(&m))`.
  void apply(const std::function<void(Module&)>& f);

  /// The tree of names with shapes and element counts, and the total.
  void print(std::ostream& out) const;

 protected:
  Module();

  /// Names the steps of a call on the tape; the first line of `operator()`: `const NamedScope name = named_scope();`.
  /// The name is the one that this was registered by, with the list's before it in a ModuleList; the outermost has
  /// none.
  NamedScope named_scope() const { return NamedScope(name_); }

  /// A new parameter: `Parameter weight = param("weight", value)`. Given another module's Parameter, it is that one,
  /// and both share it. Assigning to the member later does not replace what was registered here: change its
  /// mutable_value(). Refuses an empty name, one with a dot, and one that this module has already.
  Parameter param(const std::string& name, const Tensor& value);

  /// A new module as a member, made in place: `Linear query = child<Linear>("query", 8, 8, rng)`. Names as for param.
  template <class M, class... Args>
  M child(const std::string& name, Args&&... args) {
    announce(name);  // M's Module base, the next to be made, registers its own address: M never moves
    try {
      return M(std::forward<Args>(args)...);
    } catch (...) {
      withdraw(name);
      throw;
    }
  }

  /// Registers a module that lives at least as long as this one. Refuses this one itself, and one that contains it.
  void child(const std::string& name, Module& module);

  /// Registers an item of a list, whose own name goes before the item's.
  void item(const std::string& name, Module& module);

 private:
  struct Entry {
    std::string name;
    Parameter parameter;       // defined for a parameter
    Module* module = nullptr;  // not null for a child
  };
  Entry& add(const std::string& name);
  void announce(const std::string& name);
  void withdraw(const std::string& name) noexcept;
  bool contains(const Module& module) const;
  void collect(const std::string& prefix, std::vector<std::pair<std::string, Parameter>>& found) const;

  std::vector<Entry> entries_;
  const char* name_ = nullptr;  // lives to the program's end
  bool training_ = true;
};

std::ostream& operator<<(std::ostream& out, const Module& module);

/// Modules of one kind, named "0", "1" ...: `ModuleList<Block> layers = child<ModuleList<Block>>("layers")`.
template <class M>
class ModuleList : public Module {
 public:
  template <class... Args>
  M& add(Args&&... args) {
    modules_.push_back(std::make_unique<M>(std::forward<Args>(args)...));
    item(std::to_string(modules_.size() - 1), *modules_.back());
    return *modules_.back();
  }
  std::size_t size() const { return modules_.size(); }
  M& operator[](std::size_t i) {
    require(i < size(), "ModuleList", "the position must be below the number of modules", i, size());
    return *modules_[i];
  }

 private:
  std::vector<std::unique_ptr<M>> modules_;
};

}  // namespace TAPEGRAD::nn
