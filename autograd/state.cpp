#include "autograd/state.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iomanip>
#include <limits>
#include <locale>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

namespace TAPEGRAD {

void State::add(const std::string& prefix, State other) {
  std::unordered_set<std::string> taken;
  for (const auto& [name, array] : arrays) taken.insert(name);
  for (auto& [name, array] : other.arrays) {
    name = prefix + name;
    require(taken.insert(name).second, "State", "a name can be given only once", in_quotes(name));
  }
  for (const auto& [name, text] : other.texts) {
    require(!texts.contains(prefix + name), "State", "a name can be given only once", in_quotes(prefix + name));
  }
  for (auto& entry : other.arrays) arrays.push_back(std::move(entry));
  for (auto& [name, text] : other.texts) texts[prefix + name] = std::move(text);
}

State State::take(const std::string& prefix) {
  State taken;
  State rest;
  for (auto& [name, array] : arrays) {
    const bool wanted = name.starts_with(prefix);
    (wanted ? taken : rest).arrays.emplace_back(wanted ? name.substr(prefix.size()) : name, std::move(array));
  }
  for (auto& [name, text] : texts) {
    const bool wanted = name.starts_with(prefix);
    (wanted ? taken : rest).texts[wanted ? name.substr(prefix.size()) : name] = std::move(text);
  }
  *this = std::move(rest);
  return taken;
}

const Array* State::find(std::string_view name) const {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto& entry) { return entry.first == name; });
  return found == arrays.end() ? nullptr : &found->second;
}

const std::string& State::text(const std::string& name) const {
  const auto found = texts.find(name);
  if (found == texts.end()) refuse("State", "a text is missing", in_quotes(name));
  return found->second;
}

void State::set_number(const std::string& name, double number) {
  require(std::isfinite(number), "State", "a number must be finite: " + in_quotes(name), number);
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << std::setprecision(std::numeric_limits<double>::max_digits10) << number;
  texts[name] = text.str();
}

void State::set_count(const std::string& name, std::uint64_t count) { texts[name] = std::to_string(count); }

double State::number(const std::string& name) const {
  std::istringstream in(text(name));
  in.imbue(std::locale::classic());
  double number = 0;
  in >> number;
  const bool whole = !in.fail() && in.peek() == std::istringstream::traits_type::eof();
  require(whole && std::isfinite(number), "State", "a text must be a finite number: " + in_quotes(name),
          in_quotes(text(name)));
  return number;
}

std::uint64_t State::count(const std::string& name) const {
  const std::string& digits = text(name);
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  require(error == std::errc() && end == digits.data() + digits.size(), "State",
          "a text must be a count: " + in_quotes(name), in_quotes(digits));
  return count;
}

void require_arrays(std::string_view who, const State& state, const NamedShapes& expected, bool strict) {
  NamedShapes arrays;
  for (const auto& [name, array] : state.arrays) arrays.emplace_back(name, array.shape());
  require_arrays(who, arrays, expected, strict);
}

void require_arrays(std::string_view who, const NamedShapes& arrays, const NamedShapes& expected, bool strict) {
  std::unordered_map<std::string_view, const Shape*> present;
  for (const auto& [name, shape] : arrays) present.emplace(name, &shape);
  std::string missing, unexpected, misshapen;
  const auto list = [](std::string& names, const std::string& name) { names += (names.empty() ? " " : ", ") + name; };
  for (const auto& [name, shape] : expected) {
    const auto found = present.find(name);
    if (found == present.end()) {
      if (strict) list(missing, in_quotes(name));
      continue;
    }
    const Shape& got = *found->second;
    if (got != shape) list(misshapen, in_quotes(name) + " " + to_text(got) + " for " + to_text(shape));
    present.erase(found);
  }
  for (const auto& [name, shape] : arrays) {
    if (strict && present.contains(name)) list(unexpected, in_quotes(name));
  }
  std::string got;
  if (!missing.empty()) got += "missing" + missing;
  if (!unexpected.empty()) got += (got.empty() ? "unexpected" : "; unexpected") + unexpected;
  if (!misshapen.empty()) got += (got.empty() ? "wrongly shaped" : "; wrongly shaped") + misshapen;
  require(got.empty(), who, "names and shapes must be those expected", got);
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result.append({'\\', c});
    } else if (byte < 0x20 || byte == 0x7f) {
      const char* digits = "0123456789abcdef";
      result.append("\\u00").append({digits[byte >> 4], digits[byte & 15]});
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace TAPEGRAD
