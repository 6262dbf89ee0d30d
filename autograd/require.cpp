#include "autograd/require.hpp"

#include <cstdio>

namespace TAPEGRAD {

std::string to_text(const Shape& shape) {
  std::string text = "(";
  for (std::size_t extent : shape) text.append(text.size() > 1 ? "," : "").append(std::to_string(extent));
  return text.append(")");
}

std::string to_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

void refuse_size(const Shape& shape) { refuse("Array", "the array would be too large", to_text(shape)); }

void refuse(std::string_view who, std::string_view rule, std::string_view got) {
  std::string line = "[";
  line.append(who).append("] ").append(rule);
  if (!got.empty()) line.append("; got ").append(got);
  throw Error(line);
}

}  // namespace TAPEGRAD
