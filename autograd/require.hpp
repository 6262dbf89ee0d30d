/// One line of text for every refusal: who, which rule, what was got.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "autograd/array.hpp"

namespace TAPEGRAD {

/// What is thrown when an op, a module or a tape is used wrongly. what() is one line:
/// `[bmm] a's last axis must equal b's middle axis; got (2,3,4) and (2,5,6)`.
class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// "(2,3)" for a shape, "()" for a scalar's.
std::string to_text(const Shape& shape);
inline std::string to_text(std::string_view text) { return std::string(text); }
std::string to_text(double number);
template <class Integer>
requires std::is_integral_v<Integer> std::string to_text(Integer number) { return std::to_string(number); }

[[noreturn]] void refuse(std::string_view who, std::string_view rule, std::string_view got = {});

/// Throws an Error that says who refuses, the rule that must hold, and what was got, unless `ok`.
template <class... Got>
void require(bool ok, std::string_view who, std::string_view rule, const Got&... got) {
  if (ok) [[likely]]
    return;
  std::string all;
  ((all += (all.empty() ? "" : " and ") + to_text(got)), ...);
  refuse(who, rule, all);
}

}  // namespace TAPEGRAD
