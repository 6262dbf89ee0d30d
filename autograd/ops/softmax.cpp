#include "autograd/rules.hpp"

namespace TAPEGRAD {

Tensor softmax(const Tensor& x, int axis) {
  const int at = static_cast<int>(normalize_axis(axis, x.rank(), "softmax"));
  return record(
      "softmax", Tensor(softmax_values(x.value(), static_cast<std::size_t>(at))),
      [at]<class T>(const T& y, const T& dy, Unread, Sink<T> dx) { dx += softmax_backward(dy, y, at); }, x);
}

Tensor softmax_backward(const Tensor& dy, const Tensor& y, int axis) {
  return y * (dy - reduce_sum(dy * y, axis, true));
}

Tensor log_softmax(const Tensor& x, int axis) {
  const int at = static_cast<int>(normalize_axis(axis, x.rank(), "log_softmax"));
  return record(
      "log_softmax", Tensor(log_softmax_values(x.value(), static_cast<std::size_t>(at))),
      [at]<class T>(const T& y, const T& dy, Unread, Sink<T> dx) {
        const T total = reduce_sum(dy, at, true);
        dx += dy - exp(y) * total;
      },
      x);
}

Tensor running_sum(const Tensor& x, int axis, bool reverse) {
  return record(
      "cumsum", Tensor(running_sum(x.value(), axis, reverse)),
      [axis, reverse]<class T>(Unread, const T& dy, Unread, Sink<T> dx) { dx += running_sum(dy, axis, !reverse); }, x);
}

Tensor cumsum(const Tensor& x, int axis, bool reverse) {
  return running_sum(x, static_cast<int>(normalize_axis(axis, x.rank(), "cumsum")), reverse);
}

}  // namespace TAPEGRAD
