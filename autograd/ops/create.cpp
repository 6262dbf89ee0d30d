#include <cmath>

#include "autograd/rules.hpp"

namespace TAPEGRAD {

Tensor zeros(const Shape& shape) {
  require_size(shape, "zeros");
  return Tensor(Array(shape, Real(0)));
}

Tensor ones(const Shape& shape) {
  require_size(shape, "ones");
  return Tensor(Array(shape, Real(1)));
}

Tensor full(const Shape& shape, Real value) {
  require_size(shape, "full");
  return Tensor(Array(shape, value));
}

Tensor eye(std::size_t n) {
  require_size({n, n}, "eye");
  Array y(Shape{n, n}, Real(0));
  for (std::size_t i = 0; i < n; ++i) y.data()[i * n + i] = 1;
  return Tensor(std::move(y));
}

Tensor arange(Real start, Real stop, Real step) {
  require(std::isfinite(start) && std::isfinite(stop), "arange", "start and stop must be finite", start, stop);
  require(std::isfinite(step) && step != 0, "arange", "the step must be finite and not 0", step);
  // In double, so that the last element is neither lost nor added by Real's rounding.
  double count = std::ceil((double{stop} - double{start}) / double{step});
  require(count < 0x1p60, "arange", "the array would be too large", count);
  const auto element = [=](double i) { return static_cast<Real>(double{start} + i * double{step}); };
  // An element that is below stop by less than Real can tell is stop itself.
  if (count > 0 && element(count - 1) == stop) --count;
  Array y = empty_array(Shape{count > 0 ? static_cast<std::size_t>(count) : 0});
  for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = element(static_cast<double>(i));
  return Tensor(std::move(y));
}

Tensor arange(std::size_t n) {
  require_size({n}, "arange");
  Array y = empty_array(Shape{n});
  for (std::size_t i = 0; i < n; ++i) y.data()[i] = static_cast<Real>(i);
  return Tensor(std::move(y));
}

Tensor one_hot(const Index& index, std::size_t classes) {
  for (const std::int64_t label : index) {
    require(label >= 0 && static_cast<std::uint64_t>(label) < classes, "one_hot",
            "an index must be at least 0 and below the number of classes", label, classes);
  }
  Shape shape = index.shape();
  shape.push_back(classes);
  require_size(shape, "one_hot");
  Array y(shape, Real(0));
  Real* row = y.data();
  for (const std::int64_t label : index) {
    row[label] = 1;
    row += classes;
  }
  return Tensor(std::move(y));
}

}  // namespace TAPEGRAD
