#include "autograd/kernels.hpp"

namespace TAPEGRAD {

Tensor keep_where(const Tensor& x, const Mask& mask) {
  broadcast_shape(x.shape(), mask.shape(), "keep_where");
  return record(
      "keep_where", Tensor(keep_where(x.value(), mask)),
      []<class T>(Unread, const T& dy, Unread, const Mask& mask, Sink<T> dx) { dx += keep_where(dy, mask); }, x, mask);
}

Tensor where(const Mask& mask, const Tensor& a, const Tensor& b) {
  return record(
      "where", Tensor(select(mask, a.value(), b.value())),
      []<class T>(Unread, const T& dy, const Mask& mask, Unread, Unread, Sink<T> da, Sink<T> db) {
        if (da) da += keep_where(dy, mask);
        if (db) db += keep_where(dy, !mask);
      },
      mask, a, b);
}

}  // namespace TAPEGRAD
