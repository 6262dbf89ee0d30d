#include "autograd/random.hpp"
#include "autograd/rules.hpp"

namespace TAPEGRAD {

Tensor dropout(const Tensor& x, double p, Rng& rng) {
  require(p >= 0 && p <= 1, "dropout", "p must be from 0 to 1", p);
  if (p == 0) return x;
  Mask kept(x.shape());
  for (std::size_t i = 0; i < kept.size(); ++i) kept.data()[i] = rng.uniform() >= p;
  const Real scale = p == 1 ? Real(0) : static_cast<Real>(1 / (1 - p));
  return record(
      "dropout", Tensor(keep_where(x.value(), kept) * scale),
      [scale]<class T>(Unread, const T& dy, Unread, const Mask& kept, Sink<T> dx) {
        dx += keep_where(dy, kept) * scale;
      },
      x, kept);
}

}  // namespace TAPEGRAD
