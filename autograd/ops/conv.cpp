#include <limits>

#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

void require_window(const Window& window, std::size_t extent, const char* op) {
  constexpr std::ptrdiff_t most = std::numeric_limits<std::ptrdiff_t>::max() / 4;  // so that sums of extents don't wrap
  require(window.kernel >= 1, op, "the kernel must be at least 1 long", window.kernel);
  require(window.stride >= 1, op, "the stride must be at least 1", window.stride);
  require(window.padding >= 0 && window.padding < most, op, "the padding must be 0 or more", window.padding);
  require(window.kernel <= static_cast<std::ptrdiff_t>(extent) + 2 * window.padding, op,
          "the kernel must be at most as long as the padded input", window.kernel, extent, window.padding);
}

}  // namespace

Tensor unfold1d(const Tensor& x, const Window& window) {
  require(x.rank() == 3, "unfold1d", "x must be (batch,channels,length)", x.shape());
  require_window(window, x.extent(2), "unfold1d");
  const auto kernel = static_cast<std::size_t>(window.kernel);
  require_size({x.extent(0), x.extent(1), kernel, window_count(x.extent(2), window)}, "unfold1d");
  return record(
      "unfold1d", Tensor(unfold1d(x.value(), window)),
      [window]<class T>(Unread, const T& dy, Unread, Sink<T> dx) {
        if (dx) dx += fold1d(dy, window, dx.shape()[2]);
      },
      x);
}

Tensor fold1d(const Tensor& columns, const Window& window, std::size_t extent) {
  require(columns.rank() == 3, "fold1d", "columns must be (batch,channels * kernel,windows)", columns.shape());
  require_window(window, extent, "fold1d");
  require(columns.extent(1) % static_cast<std::size_t>(window.kernel) == 0 &&
              columns.extent(2) == window_count(extent, window),
          "fold1d", "columns must have the shape that unfold1d would give", columns.shape(), window.kernel, extent);
  require_size({columns.extent(0), columns.extent(1), extent}, "fold1d");
  return record(
      "fold1d", Tensor(fold1d(columns.value(), window, extent)),
      [window]<class T>(Unread, const T& dy, Unread, Sink<T> dx) {
        if (dx) dx += unfold1d(dy, window);
      },
      columns);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, std::ptrdiff_t stride,
              std::ptrdiff_t padding) {
  require(x.rank() == 3 && weight.rank() == 3, "conv1d",
          "x must be (batch,channels,length) and the weight (outputs,channels,kernel)", x.shape(), weight.shape());
  require(x.extent(1) == weight.extent(1), "conv1d", "x and the weight must have equally many channels", x.shape(),
          weight.shape());
  require(!bias.defined() || (bias.rank() == 1 && bias.extent(0) == weight.extent(0)), "conv1d",
          "the bias must be 1-D and equal the weight's first axis", bias.defined() ? bias.shape() : Shape(),
          weight.shape());
  const Window window{static_cast<std::ptrdiff_t>(weight.extent(2)), stride, padding};
  require_window(window, x.extent(2), "conv1d");
  const std::size_t outputs = weight.extent(0);
  const Tensor rows = reshape(weight, Shape{outputs, weight.extent(1) * weight.extent(2)});
  const Tensor y = matmul(rows, unfold1d(x, window));
  return bias.defined() ? y + reshape(bias, Shape{outputs, 1}) : y;
}

}  // namespace TAPEGRAD
