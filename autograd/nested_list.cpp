#include "autograd/nested_list.hpp"

#include "autograd/require.hpp"

namespace TAPEGRAD {
namespace {

Shape shape_of(std::initializer_list<NestedList> list) {
  Shape shape;
  for (const auto* level = &list;; level = &level->begin()->list) {
    shape.push_back(level->size());
    if (level->size() == 0 || level->begin()->is_number) return shape;
  }
}

void copy_numbers(std::initializer_list<NestedList> list, const Shape& shape, std::size_t axis, Real*& to) {
  require(list.size() == shape[axis], "Tensor", "lists beside each other must be equally long", list.size(),
          shape[axis]);
  for (const NestedList& item : list) {
    require(item.is_number == (axis + 1 == shape.size()), "Tensor", "lists must be nested equally deep", shape);
    if (item.is_number) {
      *to++ = item.number;
    } else {
      copy_numbers(item.list, shape, axis + 1, to);
    }
  }
}

}  // namespace

Array to_array(std::initializer_list<NestedList> list) {
  const Shape shape = shape_of(list);
  Array array = empty_array(shape);
  Real* to = array.data();
  copy_numbers(list, shape, 0, to);
  return array;
}

}  // namespace TAPEGRAD
