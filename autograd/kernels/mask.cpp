#include "autograd/kernels.hpp"

namespace TAPEGRAD {
namespace {

template <class F>
Mask combine(const Mask& a, const Mask& b, const char* op, F f) {
  Mask result(broadcast_shape(a.shape(), b.shape(), op));
  broadcast_apply(result.shape(), a.shape(), b.shape(), a.data(), b.data(), result.data(), f);
  return result;
}

}  // namespace

Mask operator&&(const Mask& a, const Mask& b) {
  return combine(a, b, "mask &&", [](std::uint8_t x, std::uint8_t y) { return x && y; });
}
Mask operator||(const Mask& a, const Mask& b) {
  return combine(a, b, "mask ||", [](std::uint8_t x, std::uint8_t y) { return x || y; });
}
Mask operator!(const Mask& a) {
  Mask result(a.shape());
  std::transform(a.begin(), a.end(), result.data(), [](std::uint8_t x) { return !x; });
  return result;
}

std::size_t count_true(const Mask& mask) {
  return static_cast<std::size_t>(std::count_if(mask.begin(), mask.end(), [](std::uint8_t x) { return x != 0; }));
}

Array ones_where(const Mask& mask) {
  Array result = empty_array(mask.shape());
  std::transform(mask.begin(), mask.end(), result.data(), [](std::uint8_t x) { return Real(x != 0); });
  return result;
}

Array keep_where(const Array& x, const Mask& mask) {
  const Shape shape = broadcast_shape(x.shape(), mask.shape(), "keep_where");
  Array result = empty_array(shape);
  broadcast_apply(shape, x.shape(), mask.shape(), x.data(), mask.data(), result.data(),
                  [](Real v, std::uint8_t keep) { return keep ? v : Real(0); });
  return result;
}

Array select(const Mask& mask, const Array& a, const Array& b) {
  const Shape shape = broadcast_shape(mask.shape(), broadcast_shape(a.shape(), b.shape(), "where"), "where");
  const Mask full = mask.shape() == shape ? mask : mask || Mask(shape);
  Array result = broadcast_to(b, shape);
  const Array chosen = a.shape() == shape ? Array() : broadcast_to(a, shape);
  const Real* from = a.shape() == shape ? a.data() : chosen.data();
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (full.data()[i]) result.data()[i] = from[i];
  }
  return result;
}

}  // namespace TAPEGRAD
