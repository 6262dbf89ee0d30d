#include <numeric>

#include "autograd/rules.hpp"

namespace TAPEGRAD {

Index argsort(const Tensor& x, int axis) {
  const AxisView view(x.shape(), normalize_axis(axis, x.rank(), "argsort"));
  Index result(x.shape());
  if (result.size() == 0) return result;
  PoolVector<std::int64_t> order(view.extent);
  for (std::size_t o = 0; o < view.outer; ++o) {
    for (std::size_t i = 0; i < view.inner; ++i) {
      const std::size_t offset = o * view.extent * view.inner + i;
      const auto value = [column = x.value().data() + offset, inner = view.inner](std::int64_t k) {
        return column[static_cast<std::size_t>(k) * inner];
      };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t k, std::int64_t l) {
        const Real a = value(k);
        const Real b = value(l);
        return a < b || (a == a && b != b);  // NaN is the largest
      });
      for (std::size_t k = 0; k < view.extent; ++k) result.data()[offset + k * view.inner] = order[k];
    }
  }
  return result;
}

Tensor sort(const Tensor& x, int axis) {
  const int at = static_cast<int>(normalize_axis(axis, x.rank(), "sort"));
  return gather(x, at, argsort(x, at));
}

}  // namespace TAPEGRAD
