// Alphabet: B batch, H heads, Q queries, K keys, D width of q and k, V width of v.
#include <cmath>
#include <limits>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "autograd/kernels.hpp"
#include "autograd/kernels/blas_section.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

constexpr Real kNever = -std::numeric_limits<Real>::infinity();

// Queries are taken so many at a time: the scores of a block (kBlock, K) are all that is ever held of the (Q, K)
// matrix.
constexpr std::size_t kBlock = 64;

/// One head of one batch item in an operand: its first element, and how far apart its rows are.
struct HeadRows {
  HeadRows(const AttentionLayout& layout, std::size_t length, std::size_t width)
      : row(layout.heads_in_rows ? layout.heads * width : width),
        head(layout.heads_in_rows ? width : length * width),
        item(layout.heads * length * width) {}
  std::size_t at(std::size_t b, std::size_t h) const { return b * item + h * head; }
  std::size_t row, head, item;
};

/// How the elements of something that broadcasts to (B,H,Q,K) are found.
struct ScoreStrides {
  ScoreStrides(const Shape& shape, const AttentionLayout& layout) {
    const Shape full{layout.batch, layout.heads, layout.queries, layout.keys};
    const Shape strides = broadcast_strides(shape, full);
    std::copy(strides.begin(), strides.end(), along);
  }
  std::size_t at(std::size_t b, std::size_t h, std::size_t i) const {
    return b * along[0] + h * along[1] + i * along[2];
  }
  std::size_t along[4];
};

/// The scores of one block of queries, from the keys that may matter.
class ScoreBlocks {
 public:
  ScoreBlocks(const AttentionLayout& layout, const Array& q, const Array& k, const Mask& mask, const Array* additive)
      : layout_(layout),
        q_(q),
        k_(k),
        mask_(mask),
        additive_(additive),
        q_rows_(layout, layout.queries, layout.width),
        k_rows_(layout, layout.keys, layout.width),
        mask_strides_(mask.shape(), layout),
        additive_strides_(additive ? additive->shape() : Shape(), layout),
        masks_(mask.size() != 1 || !*mask.data()) {}

  /// The keys first ... last-1 outside of which no query of the block may attend to anything.
  std::pair<std::size_t, std::size_t> key_range(std::size_t b, std::size_t h, std::size_t q0, std::size_t rows) const {
    const std::size_t end = layout_.causal ? std::min(layout_.keys, q0 + rows) : layout_.keys;
    if (!masks_) return {0, end};
    std::size_t first = end, last = 0;
    const std::size_t distinct_rows = mask_strides_.along[2] == 0 ? 1 : rows;
    for (std::size_t i = 0; i < distinct_rows; ++i) {
      const std::uint8_t* row = mask_.data() + mask_strides_.at(b, h, q0 + i);
      const std::size_t step = mask_strides_.along[3];
      std::size_t j = 0;
      while (j < first && !row[j * step]) ++j;
      first = std::min(first, j);
      j = end;
      while (j > last && !row[(j - 1) * step]) --j;
      last = std::max(last, j);
    }
    if (last <= first) return {0, 0};
    // To whole blocks: a mask that opens one more key for one query would else change the last bits of the others.
    return {first / kBlock * kBlock, std::min(end, (last + kBlock - 1) / kBlock * kBlock)};
  }

  /// scores (rows, last - first): scale q k^T + additive, -inf where attention is not allowed.
  void scores(std::size_t b, std::size_t h, std::size_t q0, std::size_t rows, std::size_t first, std::size_t last,
              Real* out) const {
    const std::size_t width = last - first;
    gemm({q_.data() + q_rows_.at(b, h) + q0 * q_rows_.row, q_rows_.row, Transpose::no},
         {k_.data() + k_rows_.at(b, h) + first * k_rows_.row, k_rows_.row, Transpose::yes}, out, width,
         {rows, width, layout_.width}, layout_.scale, false);
    for (std::size_t i = 0; i < rows; ++i) {
      Real* row = out + i * width;
      if (additive_ != nullptr) {
        const Real* more = additive_->data() + additive_strides_.at(b, h, q0 + i);
        for (std::size_t j = 0; j < width; ++j) row[j] += more[(first + j) * additive_strides_.along[3]];
      }
      if (masks_) {
        const std::uint8_t* keep = mask_.data() + mask_strides_.at(b, h, q0 + i);
        for (std::size_t j = 0; j < width; ++j) row[j] = keep[(first + j) * mask_strides_.along[3]] ? row[j] : kNever;
      }
      if (layout_.causal) {
        for (std::size_t j = std::max(q0 + i + 1, first); j < last; ++j) row[j - first] = kNever;
      }
    }
  }

 private:
  const AttentionLayout& layout_;
  const Array& q_;
  const Array& k_;
  const Mask& mask_;
  const Array* additive_;
  HeadRows q_rows_, k_rows_;
  ScoreStrides mask_strides_, additive_strides_;
  bool masks_;
};

/// f(b, h, workspace) for every head of every batch item, on all threads unless `in_order`. Each head is computed by
/// one thread, in one order, so the numbers do not depend on how many there are. The workspaces are made before, since
/// no exception may leave a thread.
template <class F>
void for_each_head(const AttentionLayout& layout, std::size_t workspace, bool in_order, F f) {
  const auto heads = static_cast<std::ptrdiff_t>(layout.batch * layout.heads);
#ifdef _OPENMP
  const double work = static_cast<double>(layout.queries) * layout.keys * layout.width * heads;
  const bool alone = in_order || work < 1e5 || omp_in_parallel();
  const int threads = alone ? 1 : static_cast<int>(std::min<std::ptrdiff_t>(omp_get_max_threads(), heads));
#else
  const int threads = 1;
  (void)in_order;
#endif
  PoolVector<Real> room(workspace * static_cast<std::size_t>(threads));
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
#endif
  for (std::ptrdiff_t i = 0; i < heads; ++i) {
#ifdef _OPENMP
    Real* own = room.data() + workspace * static_cast<std::size_t>(omp_get_thread_num());
#else
    Real* own = room.data();
#endif
    const BlasSection section;
    const auto head = static_cast<std::size_t>(i);
    f(head / layout.heads, head % layout.heads, own);
  }
}

}  // namespace

Array masked_softmax_values(const Array& scores, const Mask& mask) {
  Array result = empty_array(broadcast_shape(scores.shape(), mask.shape(), "masked_softmax"));
  broadcast_apply(result.shape(), scores.shape(), mask.shape(), scores.data(), mask.data(), result.data(),
                  [](Real score, std::uint8_t keep) { return keep ? score : kNever; });
  const std::size_t n = result.shape().back();
  for (std::size_t at = 0; at < result.size(); at += n) {
    Real* row = result.data() + at;
    const Real top = simd::max(row, n);
    if (top == kNever) {
      std::fill_n(row, n, Real(0));
    } else {
      simd::scale(row, 1 / simd::exp_of_difference(row, top, row, n), n);
    }
  }
  return result;
}

Array attention_values(const AttentionLayout& layout, const Array& q, const Array& k, const Array& v, const Mask& mask,
                       const Array* additive, Array& log_sums) {
  const std::size_t B = layout.batch, H = layout.heads, Q = layout.queries, K = layout.keys, V = layout.value_width;
  Array y = empty_array(layout.heads_in_rows ? Shape{B, Q, H * V} : Shape{B, H, Q, V});
  log_sums = empty_array(Shape{B, H, Q});
  if (log_sums.size() == 0) return y;  // however large the batch
  const ScoreBlocks blocks(layout, q, k, mask, additive);
  const HeadRows v_rows(layout, K, V);
  const HeadRows y_rows(layout, Q, V);
  for_each_head(layout, kBlock * K, false, [&](std::size_t b, std::size_t h, Real* scores) {
    for (std::size_t q0 = 0; q0 < Q; q0 += kBlock) {
      const std::size_t rows = std::min(kBlock, Q - q0);
      const auto [first, last] = blocks.key_range(b, h, q0, rows);
      const std::size_t width = last > first ? last - first : 0;
      Real* out = y.data() + y_rows.at(b, h) + q0 * y_rows.row;
      Real* sums = log_sums.data() + (b * H + h) * Q + q0;
      if (width > 0) blocks.scores(b, h, q0, rows, first, last, scores);
      for (std::size_t i = 0; i < rows; ++i) {
        Real* row = scores + i * width;
        const Real top = simd::max(row, width);
        if (top == kNever) {  // nothing to attend to
          std::fill_n(row, width, Real(0));
          sums[i] = kNever;
          continue;
        }
        const Real total = simd::exp_of_difference(row, top, row, width);
        simd::scale(row, 1 / total, width);
        sums[i] = top + std::log(total);
      }
      const Real* values = width > 0 ? v.data() + v_rows.at(b, h) + first * v_rows.row : v.data();
      gemm({scores, width, Transpose::no}, {values, v_rows.row, Transpose::no}, out, y_rows.row, {rows, V, width}, 1,
           false);
    }
  });
  return y;
}

void attention_backward(const AttentionLayout& layout, const Array& y, const Array& dy, const Array& q, const Array& k,
                        const Array& v, const Mask& mask, const Array* additive, const Array& log_sums, Array* dq,
                        Array* dk, Array* dv, Array* dadditive) {
  const std::size_t H = layout.heads, Q = layout.queries, K = layout.keys, D = layout.width, V = layout.value_width;
  if (Q == 0 || K == 0) return;  // however large the batch
  const Real scale = layout.scale;
  const ScoreBlocks blocks(layout, q, k, mask, additive);
  const HeadRows q_rows(layout, Q, D), k_rows(layout, K, D), v_rows(layout, K, V), y_rows(layout, Q, V);
  const ScoreStrides additive_strides(additive ? additive->shape() : Shape(), layout);
  // Several heads may add to one element of the additive mask's gradient, so they do it one after the other.
  for_each_head(layout, 2 * kBlock * K, dadditive != nullptr, [&](std::size_t b, std::size_t h, Real* workspace) {
    Real* weights = workspace;
    Real* dscores = workspace + kBlock * K;
    for (std::size_t q0 = 0; q0 < Q; q0 += kBlock) {
      const std::size_t rows = std::min(kBlock, Q - q0);
      const auto [first, last] = blocks.key_range(b, h, q0, rows);
      if (last <= first) continue;
      const std::size_t width = last - first;
      const Matrix dy_block{dy.data() + y_rows.at(b, h) + q0 * y_rows.row, y_rows.row, Transpose::no};
      const Real* y_block = y.data() + y_rows.at(b, h) + q0 * y_rows.row;
      const Matrix v_block{v.data() + v_rows.at(b, h) + first * v_rows.row, v_rows.row, Transpose::yes};

      blocks.scores(b, h, q0, rows, first, last, weights);
      for (std::size_t i = 0; i < rows; ++i) {
        Real* row = weights + i * width;
        const Real log_sum = log_sums.data()[(b * H + h) * Q + q0 + i];
        if (log_sum == kNever) {
          std::fill_n(row, width, Real(0));
        } else {
          simd::exp_of_difference(row, log_sum, row, width);
        }
      }
      if (dv != nullptr) {  // dv += weights^T dy
        gemm({weights, width, Transpose::yes}, dy_block, dv->data() + v_rows.at(b, h) + first * v_rows.row, v_rows.row,
             {width, V, rows}, 1, true);
      }
      if (dq == nullptr && dk == nullptr && dadditive == nullptr) continue;
      gemm(dy_block, v_block, dscores, width, {rows, width, V}, 1, false);
      for (std::size_t i = 0; i < rows; ++i) {  // through the softmax: its dot of weights and gradients is y dy
        const Real dot = simd::dot(dy_block.data + i * y_rows.row, y_block + i * y_rows.row, V);
        Real* row = dscores + i * width;
        const Real* weight = weights + i * width;
        for (std::size_t j = 0; j < width; ++j) row[j] = weight[j] == 0 ? Real(0) : weight[j] * (row[j] - dot);
      }
      if (dq != nullptr) {
        gemm({dscores, width, Transpose::no},
             {k.data() + k_rows.at(b, h) + first * k_rows.row, k_rows.row, Transpose::no},
             dq->data() + q_rows.at(b, h) + q0 * q_rows.row, q_rows.row, {rows, D, width}, scale, true);
      }
      if (dk != nullptr) {
        gemm({dscores, width, Transpose::yes},
             {q.data() + q_rows.at(b, h) + q0 * q_rows.row, q_rows.row, Transpose::no},
             dk->data() + k_rows.at(b, h) + first * k_rows.row, k_rows.row, {width, D, rows}, scale, true);
      }
      if (dadditive != nullptr) {
        for (std::size_t i = 0; i < rows; ++i) {
          Real* to = dadditive->data() + additive_strides.at(b, h, q0 + i);
          for (std::size_t j = 0; j < width; ++j) to[(first + j) * additive_strides.along[3]] += dscores[i * width + j];
        }
      }
    }
  });
}

}  // namespace TAPEGRAD
