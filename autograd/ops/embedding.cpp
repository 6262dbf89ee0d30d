#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

// dweight, but for the padding row.
void add_embedded(const Sink<Array>& dweight, std::int64_t padding, const Index& index, const Array& dy) {
  if (Array* sum = dweight.buffer()) add_at_index(*sum, 0, index, dy, padding);
}
void add_embedded(const Sink<Tensor>& dweight, std::int64_t padding, const Index& index, const Tensor& dy) {
  if (!dweight) return;
  Mask kept(Shape{index.size(), 1});
  std::transform(index.begin(), index.end(), kept.data(), [=](std::int64_t at) { return at != padding; });
  const Tensor rows = reshape(dy, Shape{index.size(), dweight.shape()[1]});
  dweight += index_add(zeros(dweight.shape()), 0, Index(Shape{index.size()}, index), keep_where(rows, kept));
}

}  // namespace

Tensor embedding(const Index& index, const Tensor& weight, std::optional<std::int64_t> padding) {
  require(weight.rank() == 2, "embedding", "weight must be (V,D)", weight.shape());
  const auto inside = [&](std::int64_t at) { return at >= 0 && static_cast<std::uint64_t>(at) < weight.shape()[0]; };
  for (const std::int64_t at : index) {
    require(inside(at), "embedding", "an index must be at least 0 and below the number of rows", at, weight.shape()[0]);
  }
  require(!padding || inside(*padding), "embedding", "the padding must be one of the rows", padding.value_or(0),
          weight.shape()[0]);
  Array rows = index_select(weight.value(), 0, index);
  Shape shape = index.shape();
  shape.push_back(weight.shape()[1]);
  rows.reshape(shape);
  const std::int64_t skipped = padding.value_or(-1);
  return record(
      "embedding", Tensor(std::move(rows)),
      [skipped]<class T>(Unread, const T& dy, const Index& index, Unread, Sink<T> dweight) {
        add_embedded(dweight, skipped, index, dy);
      },
      index, weight);
}

}  // namespace TAPEGRAD
