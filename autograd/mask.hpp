/// Mask and Index: the boolean and the integer arrays that ops take besides Tensors. They carry no gradient.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "autograd/require.hpp"

namespace TAPEGRAD {

/// Integers of any type, or truth values, one after the other.
template <class Container>
concept Integers = requires(const Container& c) {
  requires std::integral<std::remove_cvref_t<decltype(*c.begin())>>;
  c.end();
};

/// A contiguous row-major array of plain elements. Copies are cheap, and yet each has its own elements: they are shared
/// until one is written to.
template <class Element>
class PlainArray {
 public:
  PlainArray() : PlainArray(Shape{0}) {}

  /// An array of that shape, every element zero.
  explicit PlainArray(const Shape& shape)
      : contents_(std::allocate_shared<Contents>(PoolAllocator<Contents>(), shape, element_count(shape))) {}

  /// Elements in row-major order; their number must be the shape's.
  template <Integers Container>
  PlainArray(const Shape& shape, const Container& elements)
      : PlainArray(shape, elements, [](auto element) { return static_cast<Element>(element); }) {}

  /// A number in a list. A class, so that `{{1}, {2}}` can only be two rows.
  struct Number {
    template <std::integral Integer>
    Number(Integer n) : value(static_cast<Element>(n)) {}
    Element value;
  };
  /// From nested lists: `Index{1, 2}` is (2), `Index{{1}, {2}}` is (2,1).
  PlainArray(std::initializer_list<Number> row)
      : PlainArray(Shape{row.size()}, row, [](const Number& number) { return number.value; }) {}
  PlainArray(std::initializer_list<std::initializer_list<Element>> rows) : PlainArray(from_rows(rows)) {}

  const Shape& shape() const { return contents_->shape; }
  std::size_t rank() const { return shape().size(); }
  std::size_t size() const { return contents_->elements.size(); }
  const Element* data() const { return contents_->elements.data(); }
  Element* data() {
    if (contents_.use_count() > 1) contents_ = std::allocate_shared<Contents>(PoolAllocator<Contents>(), *contents_);
    return contents_->elements.data();
  }
  const Element* begin() const { return data(); }
  const Element* end() const { return data() + size(); }

 protected:
  template <class Container, class Convert>
  PlainArray(const Shape& shape, const Container& elements, Convert convert) : PlainArray(shape) {
    const auto count = static_cast<std::size_t>(std::distance(elements.begin(), elements.end()));
    require(count == size(), "PlainArray", "the number of elements must be the shape's", count, shape);
    std::transform(elements.begin(), elements.end(), data(), convert);
  }

  template <class T>
  static PlainArray from_rows(std::initializer_list<std::initializer_list<T>> rows) {
    PlainArray array(Shape{rows.size(), rows.size() ? rows.begin()->size() : 0});
    Element* to = array.data();
    for (const auto& row : rows) {
      require(row.size() == array.shape()[1], "PlainArray", "rows must be equally long", row.size(), array.shape()[1]);
      to = std::copy(row.begin(), row.end(), to);
    }
    return array;
  }

 private:
  struct Contents {
    Contents(const Shape& s, std::size_t count) : shape(s), elements(count) {}
    Shape shape;
    PoolVector<Element> elements;
  };
  std::shared_ptr<Contents> contents_;
};

/// Integers, such as class labels or positions along an axis.
using Index = PlainArray<std::int64_t>;

/// Truth values, one byte each. In attention, true means "may attend".
class Mask : public PlainArray<std::uint8_t> {
 public:
  Mask() = default;
  explicit Mask(const Shape& shape) : PlainArray<std::uint8_t>(shape) {}
  /// True where an element is not 0.
  template <Integers Container>
  Mask(const Shape& shape, const Container& elements)
      : PlainArray<std::uint8_t>(shape, elements, [](auto element) { return std::uint8_t(element != 0); }) {}
  template <std::same_as<bool> Truth>  // a template, so that {{true}, {false}} can only be two rows
  Mask(std::initializer_list<Truth> row) : PlainArray<std::uint8_t>(Shape{row.size()}, row) {}
  Mask(std::initializer_list<std::initializer_list<bool>> rows) : PlainArray<std::uint8_t>(from_rows(rows)) {}
};

/// Elementwise logic, broadcasting as NumPy does.
Mask operator&&(const Mask& a, const Mask& b);
Mask operator||(const Mask& a, const Mask& b);
Mask operator!(const Mask& a);

/// The number of true elements.
std::size_t count_true(const Mask& mask);

}  // namespace TAPEGRAD
