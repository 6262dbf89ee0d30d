#include "nn/module.hpp"

#include <algorithm>
#include <iomanip>
#include <mutex>
#include <ostream>
#include <set>

namespace TAPEGRAD::nn {
namespace {

/// Where the next Module that this thread makes belongs, and its name.
thread_local Module** place = nullptr;
thread_local const char* place_name = nullptr;

/// A copy of the name that lives to the program's end, as tapes need it; one for all modules of that name.
const char* lasting(const std::string& name) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string>();  // never destroyed
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

bool among(const std::vector<Parameter>& parameters, const Parameter& parameter) {
  return std::any_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.same_as(parameter); });
}

}  // namespace

Module::Module() {
  if (place == nullptr) return;
  *std::exchange(place, nullptr) = this;
  name_ = place_name;
}

Module::Entry& Module::add(const std::string& name) {
  require(!name.empty() && name.find('.') == std::string::npos, "Module", "a name must be non-empty and without a dot",
          "\"" + name + "\"");
  for (const Entry& entry : entries_) require(entry.name != name, "Module", "a name can be given only once", name);
  return entries_.emplace_back(Entry{name, {}, nullptr});
}

Parameter Module::param(const std::string& name, const Tensor& value) {
  Parameter parameter(value);
  return add(name).parameter = parameter;
}

void Module::announce(const std::string& name) {
  place = &add(name).module;
  place_name = lasting(name);
}

void Module::withdraw(const std::string& name) noexcept {
  place = nullptr;
  std::erase_if(entries_, [&](const Entry& entry) { return entry.name == name; });
}

bool Module::contains(const Module& module) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.module == &module || (entry.module != nullptr && entry.module->contains(module));
  });
}

void Module::child(const std::string& name, Module& module) {
  require(&module != this, "Module", "a module can't be its own child", name);
  require(!module.contains(*this), "Module", "a child can't contain its parent", name);
  add(name).module = &module;
  module.name_ = lasting(name);
}

void Module::item(const std::string& name, Module& module) {
  child(name, module);
  if (name_ != nullptr) module.name_ = lasting(std::string(name_).append(".").append(name));
}

void Module::collect(const std::string& prefix, std::vector<std::pair<std::string, Parameter>>& found) const {
  for (const Entry& entry : entries_) {
    if (entry.parameter.defined()) found.emplace_back(prefix + entry.name, entry.parameter);
    if (entry.module != nullptr) entry.module->collect(prefix + entry.name + ".", found);
  }
}

std::vector<std::pair<std::string, Parameter>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Parameter>> found;
  collect("", found);
  return found;
}

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> once;
  for (const auto& [name, parameter] : named_parameters()) {
    if (!among(once, parameter)) once.push_back(parameter);
  }
  return once;
}

std::size_t Module::parameter_count() const {
  std::size_t count = 0;
  for (const Parameter& parameter : parameters()) count += parameter.size();
  return count;
}

void Module::zero_grad() {
  for (Parameter& parameter : parameters()) parameter.zero_grad();
}

void Module::train(bool training) {
  training_ = training;
  for (const Entry& entry : entries_) {
    if (entry.module != nullptr) entry.module->train(training);
  }
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (const Entry& entry : entries_) {
    if (entry.module != nullptr) entry.module->apply(f);
  }
  f(*this);
}

void Module::print(std::ostream& out) const {
  const auto named = named_parameters();
  std::size_t widest = 5;
  std::size_t widest_shape = 5;
  for (const auto& [name, parameter] : named) {
    widest = std::max(widest, name.size());
    widest_shape = std::max(widest_shape, to_text(parameter.shape()).size());
  }
  const auto row = [&](const std::string& name, const std::string& shape, const std::string& count) {
    out << std::left << std::setw(static_cast<int>(widest + 2)) << name << std::setw(static_cast<int>(widest_shape + 2))
        << shape << std::right << std::setw(12) << count << '\n';
  };
  row("name", "shape", "count");
  std::vector<Parameter> counted;
  for (const auto& [name, parameter] : named) {
    const bool shared = among(counted, parameter);
    if (!shared) counted.push_back(parameter);
    row(name, to_text(parameter.shape()), shared ? "shared" : std::to_string(parameter.size()));
  }
  row("total", "", std::to_string(parameter_count()));
}

std::ostream& operator<<(std::ostream& out, const Module& module) {
  module.print(out);
  return out;
}

}  // namespace TAPEGRAD::nn
