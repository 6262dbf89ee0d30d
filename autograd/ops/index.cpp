#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

void require_mask(const Mask& mask, const Shape& shape, const char* op) {
  require(broadcasts_to(mask.shape(), shape), op, "the mask must broadcast to x's shape", mask.shape(), shape);
}

void require_list(const Index& index, const char* op) {
  require(index.rank() == 1, op, "the index must be 1-D", index.shape());
}

/// index has the rank of the shape, and extents at most the shape's off the axis.
void require_within(const Index& index, const Shape& shape, std::size_t axis, const char* op) {
  bool within = index.rank() == shape.size();
  for (std::size_t i = 0; within && i < shape.size(); ++i) within = i == axis || index.shape()[i] <= shape[i];
  require(within, op, "index must have the array's rank, and extents at most its off the axis", index.shape(), shape);
}

// dx += index_add(zeros, dy) and dx += scatter_add(dy): where dx is an array, straight into it.
void add_selected(const Sink<Array>& dx, int axis, const Index& index, const Array& dy) {
  if (Array* sum = dx.buffer()) add_at_index(*sum, axis, index, dy);
}
void add_selected(const Sink<Tensor>& dx, int axis, const Index& index, const Tensor& dy) {
  if (dx) dx += index_add(zeros(dx.shape()), axis, index, dy);
}
void add_gathered(const Sink<Array>& dx, int axis, const Index& index, const Array& dy) {
  if (Array* sum = dx.buffer()) add_at_gather(*sum, axis, index, dy);
}
void add_gathered(const Sink<Tensor>& dx, int axis, const Index& index, const Tensor& dy) {
  if (dx) dx += scatter_add(dy, axis, index, dx.shape());
}

}  // namespace

// ---- by position ----------------------------------------------------------------------------------------------------

Tensor index_select(const Tensor& x, int axis, const Index& index) {
  const int at = static_cast<int>(normalize_axis(axis, x.rank(), "index_select"));
  require_list(index, "index_select");
  return record(
      "index_select", Tensor(index_select(x.value(), at, index)),
      [at]<class T>(Unread, const T& dy, Unread, const Index& index, Sink<T> dx) { add_selected(dx, at, index, dy); },
      x, index);
}

Tensor index_add(const Tensor& x, int axis, const Index& index, const Tensor& source) {
  const std::size_t at = normalize_axis(axis, x.rank(), "index_add");
  require_list(index, "index_add");
  Shape taken = x.shape();
  taken[at] = index.size();
  require(source.shape() == taken, "index_add", "source must have the shape that index_select would give",
          source.shape(), taken);
  Array y = x.value();
  add_at_index(y, static_cast<int>(at), index, source.value());
  return record(
      "index_add", Tensor(std::move(y)),
      [at]<class T>(Unread, const T& dy, Unread, const Index& index, Unread, Sink<T> dx, Sink<T> dsource) {
        dx += dy;
        if (dsource) dsource += index_select(dy, static_cast<int>(at), index);
      },
      x, index, source);
}

Tensor gather(const Tensor& x, int axis, const Index& index) {
  const std::size_t at = normalize_axis(axis, x.rank(), "gather");
  require_within(index, x.shape(), at, "gather");
  return record(
      "gather", Tensor(gather(x.value(), static_cast<int>(at), index)),
      [at]<class T>(Unread, const T& dy, Unread, const Index& index, Sink<T> dx) {
        add_gathered(dx, static_cast<int>(at), index, dy);
      },
      x, index);
}

Tensor scatter_add(const Tensor& x, int axis, const Index& index, const Shape& shape) {
  const std::size_t at = normalize_axis(axis, shape.size(), "scatter_add");
  require_within(index, shape, at, "scatter_add");
  require(x.shape() == index.shape(), "scatter_add", "x must have index's shape", x.shape(), index.shape());
  require_size(shape, "scatter_add");
  Array y(shape, Real(0));
  add_at_gather(y, static_cast<int>(at), index, x.value());
  return record(
      "scatter_add", Tensor(std::move(y)),
      [at]<class T>(Unread, const T& dy, Unread, const Index& index, Sink<T> dx) {
        dx += gather(dy, static_cast<int>(at), index);
      },
      x, index);
}

// ---- by mask --------------------------------------------------------------------------------------------------------

Tensor masked_select(const Tensor& x, const Mask& mask) {
  require_mask(mask, x.shape(), "masked_select");
  const Mask full = mask.shape() == x.shape() ? mask : mask || Mask(x.shape());
  return record(
      "masked_select", Tensor(masked_select(x.value(), full)),
      []<class T>(Unread, const T& dy, Unread, const Mask& mask, Sink<T> dx) { dx += masked_scatter(dy, mask); }, x,
      full);
}

Tensor masked_scatter(const Tensor& x, const Mask& mask) {
  require(x.rank() == 1, "masked_scatter", "x must be 1-D", x.shape());
  return record(
      "masked_scatter", Tensor(masked_scatter(x.value(), mask)),
      []<class T>(Unread, const T& dy, Unread, const Mask& mask, Sink<T> dx) { dx += masked_select(dy, mask); }, x,
      mask);
}

Tensor masked_fill(const Tensor& x, const Mask& mask, Real value) {
  require_mask(mask, x.shape(), "masked_fill");
  Array y = empty_array(x.shape());
  broadcast_apply(x.shape(), x.shape(), mask.shape(), x.value().data(), mask.data(), y.data(),
                  [value](Real v, std::uint8_t fill) { return fill ? value : v; });
  return record(
      "masked_fill", Tensor(std::move(y)),
      []<class T>(Unread, const T& dy, Unread, const Mask& mask, Sink<T> dx) { dx += keep_where(dy, !mask); }, x, mask);
}

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
