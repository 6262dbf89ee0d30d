#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

constexpr Transpose no = Transpose::no;
constexpr Transpose yes = Transpose::yes;

/// op(a) op(b) of at least 2-D factors. A gradient of a transposed factor is the transposed product.
Tensor product(const char* op, const Tensor& a, const Tensor& b, Transpose ta, Transpose tb) {
  return record(
      op, Tensor(matmul(a.value(), b.value(), ta, tb).evaluate()),
      [ta, tb]<class T>(Unread, const T& dy, const T& a, const T& b, Sink<T> da, Sink<T> db) {
        if (da) da += ta == no ? matmul(dy, b, no, tb == no ? yes : no) : matmul(b, dy, tb, yes);
        if (db) db += tb == no ? matmul(a, dy, ta == no ? yes : no, no) : matmul(dy, a, yes, ta);
      },
      a, b);
}

/// x weight^T + bias, the product added by the BLAS to rows that hold the bias.
Tensor product_plus_bias(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Product product = matmul(x.value(), weight.value(), no, yes);
  Array value = broadcast_to(bias.value(), product.shape);
  product.fill(value, true);
  return record(
      "linear", Tensor(std::move(value)),
      []<class T>(Unread, const T& dy, const T& x, const T& weight, Unread, Sink<T> dx, Sink<T> dweight,
                  Sink<T> dbias) {
        if (dx) dx += matmul(dy, weight, no, no);
        if (dweight) dweight += matmul(dy, x, yes, no);
        dbias += dy;
      },
      x, weight, bias);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, Transpose transpose_a, Transpose transpose_b) {
  require(a.rank() >= 1 && b.rank() >= 1, "matmul", "the factors must have an axis", a.shape(), b.shape());
  require(a.rank() >= 2 || transpose_a == no, "matmul", "a 1-D factor can't be transposed", a.shape());
  require(b.rank() >= 2 || transpose_b == no, "matmul", "a 1-D factor can't be transposed", b.shape());
  if (a.rank() >= 2 && b.rank() >= 2) return product("matmul", a, b, transpose_a, transpose_b);
  const Tensor left = a.rank() == 1 ? unsqueeze(a, 0) : a;
  const Tensor right = b.rank() == 1 ? unsqueeze(b, 1) : b;
  Tensor y = product("matmul", left, right, transpose_a, transpose_b);
  if (b.rank() == 1) y = squeeze(y, -1);
  return a.rank() == 1 ? squeeze(y, b.rank() == 1 ? -1 : -2) : y;
}

Tensor bmm(const Tensor& a, const Tensor& b, Transpose transpose_a, Transpose transpose_b) {
  require(a.rank() == 3 && b.rank() == 3 && a.shape()[0] == b.shape()[0], "bmm",
          "a and b must be 3-D and have equally many matrices", a.shape(), b.shape());
  require(a.extent(transpose_a == yes ? 1 : 2) == b.extent(transpose_b == yes ? 2 : 1), "bmm",
          "a's last axis must equal b's middle axis (after transposing)", a.shape(), b.shape());
  return product("bmm", a, b, transpose_a, transpose_b);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require(x.rank() >= 1 && weight.rank() == 2 && x.extent(-1) == weight.extent(1), "linear",
          "x's last axis must equal the weight's second", x.shape(), weight.shape());
  require(!bias.defined() || (bias.rank() == 1 && bias.extent(0) == weight.extent(0)), "linear",
          "the bias must be 1-D and equal the weight's first axis", bias.defined() ? bias.shape() : Shape(),
          weight.shape());
  const Tensor rows = x.rank() == 1 ? unsqueeze(x, 0) : x;
  const Tensor y = bias.defined() ? product_plus_bias(rows, weight, bias) : product("linear", rows, weight, no, yes);
  return x.rank() == 1 ? squeeze(y, 0) : y;
}

}  // namespace TAPEGRAD
