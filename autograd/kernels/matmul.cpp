#include <cblas.h>
#ifdef TAPEGRAD_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#include <bit>
#include <limits>

#include "autograd/kernels.hpp"
#include "autograd/kernels/blas_section.hpp"
#include "autograd/kernels/parallel.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

/// The two matrix axes, or the batch axes, of a shape.
struct Factor {
  explicit Factor(const Shape& shape) : rows(shape[shape.size() - 2]), columns(shape.back()) {
    batch.assign(shape.begin(), shape.end() - 2);
  }
  Shape batch;
  std::size_t rows;
  std::size_t columns;
};

// Below this many multiply-adds a call of the BLAS costs more than the work.
constexpr std::size_t kFewProducts = 512;

void small_gemm(const Matrix& a, const Matrix& b, Real* out, std::size_t out_stride, const GemmSize& size, Real alpha,
                bool add) {
  const auto [m, n, k] = size;
  const std::size_t a_row = a.transpose == Transpose::yes ? 1 : a.stride;
  const std::size_t a_column = a.transpose == Transpose::yes ? a.stride : 1;
  const bool b_is_rows = b.transpose == Transpose::no || (k == 1 && b.stride == 1);  // a column, transposed, is a row
  for (std::size_t i = 0; i < m; ++i) {
    Real* row = out + i * out_stride;
    for (std::size_t l = 0; l < k; ++l) {
      const Real factor = alpha * a.data[i * a_row + l * a_column];
      const Real* b_row = b.data + l * (b_is_rows ? b.stride : 1);
      if (b_is_rows && l == 0 && !add) {
        for (std::size_t j = 0; j < n; ++j) row[j] = factor * b_row[j];
      } else if (b_is_rows) {
        for (std::size_t j = 0; j < n; ++j) row[j] += factor * b_row[j];
      } else {
        for (std::size_t j = 0; j < n; ++j) row[j] = (l > 0 || add ? row[j] : 0) + factor * b_row[j * b.stride];
      }
    }
  }
}

// From this many multiply-adds on, threads gain more than they cost.
constexpr std::size_t kParallelWork = 1 << 22;

/// How many pieces to cut an axis into: a power of 2, so that it suits most numbers of cores. Shorter ones than these
/// would cost one core some percent, since each product packs the other operand anew.
std::size_t pieces_of(std::size_t extent) {
  if (extent < 512) return 1;
  return std::clamp<std::size_t>(std::bit_floor(extent / 512), 2, 32);
}

#ifdef TAPEGRAD_ONEDNN
// From this many multiply-adds on, oneDNN's products outweigh its call's cost. It chooses its instructions at run time,
// also on processors that are newer than the BLAS, which may then run eight times slower.
constexpr std::size_t kOneDnnWork = 1 << 12;

/// Whether oneDNN did it.
bool onednn_gemm(const Matrix& a, const Matrix& b, Real* out, std::size_t out_stride, const GemmSize& size, Real alpha,
                 Real beta) {
  const auto letter = [](const Matrix& x) { return x.transpose == Transpose::yes ? 'T' : 'N'; };
  const auto as_dim = [](std::size_t extent) { return static_cast<dnnl_dim_t>(extent); };
  return dnnl_sgemm(letter(a), letter(b), as_dim(size.m), as_dim(size.n), as_dim(size.k), alpha, a.data,
                    as_dim(a.stride), b.data, as_dim(b.stride), beta, out, as_dim(out_stride)) == dnnl_success;
}
#endif

/// One call of a library, which may not use threads of its own: its results would depend on their number.
void blas_gemm(const Matrix& a, const Matrix& b, Real* out, std::size_t out_stride, const GemmSize& size, Real alpha,
               bool add) {
  const BlasSection section;
  BlasSection::enter();
  const Real beta = add ? 1 : 0;
#ifdef TAPEGRAD_ONEDNN
  if (size.m * size.n * size.k >= kOneDnnWork && onednn_gemm(a, b, out, out_stride, size, alpha, beta)) return;
#endif
  const auto flag = [](const Matrix& x) { return x.transpose == Transpose::yes ? CblasTrans : CblasNoTrans; };
  const auto as_int = [](std::size_t extent) { return static_cast<int>(extent); };
#ifdef TAPEGRAD_DOUBLE
  const auto blas = cblas_dgemm;
#else
  const auto blas = cblas_sgemm;
#endif
  blas(CblasRowMajor, flag(a), flag(b), as_int(size.m), as_int(size.n), as_int(size.k), alpha, a.data, as_int(a.stride),
       b.data, as_int(b.stride), beta, out, as_int(out_stride));
}

}  // namespace

void gemm(const Matrix& a, const Matrix& b, Real* out, std::size_t out_stride, const GemmSize& size, Real alpha,
          bool add) {
  const std::size_t m = size.m, n = size.n, k = size.k;
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::size_t i = 0; i < m && !add; ++i) std::fill_n(out + i * out_stride, n, Real(0));
    return;
  }
  const bool column_is_row = n == 1 && (b.transpose == Transpose::yes || b.stride == 1);
  if (column_is_row && a.transpose == Transpose::no &&
      m * k < 4096) {  // a call of the BLAS would cost more than the work
    for (std::size_t i = 0; i < m; ++i) {
      Real& to = out[i * out_stride];
      to = (add ? to : Real(0)) + alpha * simd::dot(a.data + i * a.stride, b.data, k);
    }
    return;
  }
  if (m * n * k <= kFewProducts) return small_gemm(a, b, out, out_stride, size, alpha, add);
  for (std::size_t extent : {m, n, k, a.stride, b.stride, out_stride}) {
    require(extent <= static_cast<std::size_t>(std::numeric_limits<int>::max()), "matmul",
            "an extent must be one that the BLAS can count", extent);
  }
  // The longer axis goes to the BLAS in pieces that depend on the shape alone, so that the numbers are the same for any
  // number of threads.
  const bool by_rows = m >= n;
  const std::size_t extent = by_rows ? m : n;
  const std::size_t pieces = m * n * k < kParallelWork ? 1 : pieces_of(extent);
  const std::size_t piece = (extent / pieces + 63) / 64 * 64;
  const std::size_t a_step = by_rows ? (a.transpose == Transpose::yes ? 1 : a.stride) : 0;
  const std::size_t b_step = by_rows ? 0 : (b.transpose == Transpose::yes ? b.stride : 1);
  parallel_for((extent + piece - 1) / piece, pieces > 1, [&](std::size_t i) {
    const std::size_t first = i * piece;
    const std::size_t length = std::min(piece, extent - first);
    blas_gemm({a.data + first * a_step, a.stride, a.transpose}, {b.data + first * b_step, b.stride, b.transpose},
              out + first * (by_rows ? out_stride : 1), out_stride, {by_rows ? length : m, by_rows ? n : length, k},
              alpha, add);
  });
}

Product matmul(const Array& a, const Array& b, Transpose transpose_a, Transpose transpose_b) {
  const Factor fa(a.shape());
  const Factor fb(b.shape());
  const bool ta = transpose_a == Transpose::yes;
  const bool tb = transpose_b == Transpose::yes;
  require((ta ? fa.rows : fa.columns) == (tb ? fb.columns : fb.rows), "matmul",
          "the inner extents of a and b must be equal", a.shape(), b.shape());
  Shape shape = broadcast_shape(fa.batch, fb.batch, "matmul");
  shape.push_back(ta ? fa.columns : fa.rows);
  shape.push_back(tb ? fb.rows : fb.columns);
  return {&a, &b, transpose_a, transpose_b, shape};
}

Array Product::evaluate() const {
  Array out = empty_array(shape);
  fill(out, false);
  return out;
}

void Product::fill(Array& out, bool add) const {
  require(broadcasts_to(out.shape(), shape) && out.dimension() >= 2, "matmul",
          "a gradient's shape must broadcast to the product's", out.shape(), shape);
  const Factor fa(a->shape());
  const Factor fb(b->shape());
  const std::size_t m = shape[shape.size() - 2];
  const std::size_t n = shape.back();
  const std::size_t k = transpose_a == Transpose::yes ? fa.rows : fa.columns;
  Shape batch(shape.begin(), shape.end() - 2);
  const Shape out_batch(out.shape().begin(), out.shape().end() - 2);
  const std::size_t batches = element_count(batch);
  if (out.size() == 0) return;
  if (batches == 0) {
    if (!add) out.fill(Real(0));
    return;
  }

  // Rows of `rows` results each, from inner extents `inner`, at these places.
  const auto multiply = [&](const Real* x, const Real* y, Real* to, std::size_t rows, std::size_t inner, bool more) {
    gemm({x, fa.columns, transpose_a}, {y, fb.columns, transpose_b}, to, n, {rows, n, inner}, 1, more);
  };

  // Rows of all batches in one call: b is shared and a is not transposed, or the batches are summed over.
  const bool a_has_all = fa.batch == batch;
  if (a_has_all && element_count(fb.batch) == 1 && transpose_a == Transpose::no &&
      element_count(out_batch) == batches) {
    multiply(a->data(), b->data(), out.data(), batches * m, k, add);
    return;
  }
  if (a_has_all && fb.batch == batch && element_count(out_batch) == 1 && transpose_a == Transpose::yes &&
      transpose_b == Transpose::no) {
    multiply(a->data(), b->data(), out.data(), m, batches * k, add);
    return;
  }

  const BlasSection section;
  if (a_has_all && fb.batch == batch && out_batch == batch) {
    parallel_for(batches, m * n * k < kParallelWork && batches * m * n * k >= kParallelWork, [&](std::size_t i) {
      multiply(a->data() + i * fa.rows * fa.columns, b->data() + i * fb.rows * fb.columns, out.data() + i * m * n, m, k,
               add);
    });
    return;
  }

  const Shape a_strides = broadcast_strides(fa.batch, batch);
  const Shape b_strides = broadcast_strides(fb.batch, batch);
  const Shape out_strides = broadcast_strides(out_batch, batch);
  const bool sums = element_count(out_batch) != batches;
  if (sums && !add) out.fill(Real(0));
  Shape at(batch.size(), 0);
  for (std::size_t done = 0; done < batches; ++done) {
    std::size_t a_at = 0, b_at = 0, out_at = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      a_at += at[i] * a_strides[i];
      b_at += at[i] * b_strides[i];
      out_at += at[i] * out_strides[i];
    }
    multiply(a->data() + a_at * fa.rows * fa.columns, b->data() + b_at * fb.rows * fb.columns,
             out.data() + out_at * m * n, m, k, add || sums);
    for (std::size_t i = at.size(); i-- > 0;) {
      if (++at[i] < batch[i]) break;
      at[i] = 0;
    }
  }
}

}  // namespace TAPEGRAD
