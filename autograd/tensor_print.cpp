#include <ostream>

#include "autograd/tensor.hpp"

namespace TAPEGRAD {
namespace {

constexpr std::size_t kShort = 64;  // so many elements are printed in full
constexpr std::size_t kAxis = 8;    // and else so long an axis
constexpr std::size_t kEdge = 3;    // of a longer one, so much of either end

/// Prints the `axis`-th axis and those below it, from `data` on, where `size` elements are left.
void print_axis(std::ostream& out, const Array& array, std::size_t axis, const Real* data, std::size_t size) {
  const Shape& shape = array.shape();
  if (axis == shape.size()) {
    out << *data;
    return;
  }
  const std::size_t extent = shape[axis];
  const bool is_short = array.size() <= kShort || extent <= kAxis;
  out << '{';
  for (std::size_t i = 0; i < extent; ++i) {
    if (i > 0) out << ", ";
    if (!is_short && i == kEdge) {
      out << "..., ";
      i = extent - kEdge;
    }
    print_axis(out, array, axis + 1, data + i * (size / extent), size / extent);
  }
  out << '}';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "Tensor (undefined)";
  out << "Tensor " << to_text(tensor.shape()) << ' ';
  print_axis(out, tensor.value(), 0, tensor.value().data(), tensor.size());
  return out;
}

}  // namespace TAPEGRAD
