/// Braced lists of numbers: `{{1, 2}, {3, 4}}`.
#pragma once

#include <concepts>
#include <initializer_list>

#include "autograd/array.hpp"

namespace TAPEGRAD {

/// A number or a list of such: what a braced list of numbers is read as.
struct NestedList {
  template <class Number>
  requires std::is_arithmetic_v<Number> NestedList(Number n) : number(static_cast<Real>(n)), is_number(true) {}
  NestedList(std::initializer_list<NestedList> l) : list(l) {}
  Real number = 0;
  bool is_number = false;
  std::initializer_list<NestedList> list;
};
Array to_array(std::initializer_list<NestedList> list);

}  // namespace TAPEGRAD
