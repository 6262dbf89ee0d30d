#include <cmath>

#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

constexpr Transpose no = Transpose::no;
constexpr Transpose yes = Transpose::yes;

const Mask& everything() {
  static const Mask all(Shape{}, std::initializer_list<std::uint8_t>{1});
  return all;
}

/// The mask of the options, and causality as a mask, together: what the composed formula needs.
Mask full_mask(const AttentionLayout& layout, const Mask& mask) {
  return layout.causal ? mask && causal(layout.queries, layout.keys) : mask;
}

Tensor split(const AttentionLayout& layout, const Tensor& x) {
  return layout.heads_in_rows ? split_heads(x, layout.heads) : x;
}
Tensor join(const AttentionLayout& layout, const Tensor& x) { return layout.heads_in_rows ? join_heads(x) : x; }

/// The scores softmax is taken of, (B,H,Q,K), from split heads.
Tensor scores_of(const AttentionLayout& layout, const Tensor& q, const Tensor& k, const Tensor& additive) {
  const Tensor scores = matmul(q, k, no, yes) * layout.scale;
  return additive.defined() ? scores + additive : scores;
}

/// The rule of attention on arrays: the fused kernel, which adds to all gradients in one pass.
void backward(const AttentionLayout& layout, const Array& y, const Array& dy, const Array& q, const Array& k,
              const Array& v, const Array* additive, const Mask& mask, const Saved& log_sums, Sink<Array> dq,
              Sink<Array> dk, Sink<Array> dv, const Sink<Array>* dadditive) {
  attention_backward(layout, y, dy, q, k, v, mask, additive, log_sums.array.value(), dq.buffer(), dk.buffer(),
                     dv.buffer(), dadditive ? dadditive->buffer() : nullptr);
}

/// The rule on Tensors: the formula composed of ops, so that it can be differentiated again.
void backward(const AttentionLayout& layout, const Tensor&, const Tensor& dy, const Tensor& q, const Tensor& k,
              const Tensor& v, const Tensor* additive, const Mask& mask, const Saved&, Sink<Tensor> dq, Sink<Tensor> dk,
              Sink<Tensor> dv, const Sink<Tensor>* dadditive) {
  const Tensor queries = split(layout, q);
  const Tensor keys = split(layout, k);
  const Tensor doutput = split(layout, dy);
  const Tensor weights =
      masked_softmax(scores_of(layout, queries, keys, additive ? *additive : Tensor()), full_mask(layout, mask));
  const Tensor dweights = matmul(doutput, split(layout, v), no, yes);
  const Tensor dscores = softmax_backward(dweights, weights, 3);
  if (dq) dq += join(layout, matmul(dscores, keys) * layout.scale);
  if (dk) dk += join(layout, matmul(dscores, queries, yes, no) * layout.scale);
  if (dv) dv += join(layout, matmul(weights, doutput, yes, no));
  if (dadditive) *dadditive += dscores;
}

/// Refuses a mask that does not broadcast to the scores, and one of three axes, whose batch would be taken for heads.
void require_mask(const Shape& mask, const Shape& scores, const char* op, const char* three_axes) {
  require(mask.size() != 3 || scores[1] <= 1, op, three_axes, mask, scores);
  require(broadcasts_to(mask, scores), op, "the mask must broadcast to (B,H,Q,K)", mask, scores);
}

AttentionLayout layout_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                          const char* op) {
  const bool in_rows = options.heads != 0;
  require(q.rank() == (in_rows ? 3 : 4) && k.rank() == q.rank() && v.rank() == q.rank(), op,
          "q, k and v must be (B,H,T,D), or (B,T,H*D) when the number of heads is given", q.shape(), k.shape(),
          v.shape());
  const std::size_t heads = in_rows ? options.heads : q.shape()[1];
  const std::size_t length = in_rows ? 1 : 2;
  const std::size_t per_row = in_rows ? heads : 1;
  require(q.shape()[0] == k.shape()[0] && k.shape()[0] == v.shape()[0], op, "the batches of q, k and v must be equal",
          q.shape(), k.shape(), v.shape());
  require(in_rows || (k.shape()[1] == heads && v.shape()[1] == heads), op, "q, k and v must have equally many heads",
          q.shape(), k.shape(), v.shape());
  require(q.shape().back() == k.shape().back(), op, "q and k must be equally wide", q.shape(), k.shape());
  require(k.shape()[length] == v.shape()[length], op, "there must be a value for each key", k.shape(), v.shape());
  require(q.shape().back() % per_row == 0 && v.shape().back() % per_row == 0, op,
          "the widths must be divisible by the number of heads", q.shape(), v.shape());
  const std::size_t width = q.shape().back() / per_row;
  const Shape scores{q.shape()[0], heads, q.shape()[length], k.shape()[length]};
  if (options.mask) {
    require_mask(options.mask->shape(), scores, op, "a mask of three axes is (B,Q,K): say every_head(mask)");
  }
  if (options.additive_mask.defined()) {
    require_mask(options.additive_mask.shape(), scores, op,
                 "an additive mask of three axes is (B,Q,K): say unsqueeze(mask, 1)");
  }
  const double default_scale = width == 0 ? 1 : 1 / std::sqrt(static_cast<double>(width));  // of no width: scores are 0
  const Real scale = options.scale.value_or(static_cast<Real>(default_scale));
  return {q.shape()[0],   heads, q.shape()[length], k.shape()[length], width, v.shape().back() / per_row, in_rows,
          options.causal, scale};
}

}  // namespace

Mask causal(std::size_t queries, std::size_t keys) {
  Mask mask(Shape{queries, keys});
  for (std::size_t i = 0; i < queries; ++i) std::fill_n(mask.data() + i * keys, std::min(i + 1, keys), 1);
  return mask;
}
Mask causal(std::size_t n) { return causal(n, n); }

Mask valid_lengths(const Index& lengths, std::size_t keys) {
  require(lengths.rank() == 1 || lengths.rank() == 2, "valid_lengths", "lengths must be (B) or (B,Q)", lengths.shape());
  const std::size_t queries = lengths.rank() == 2 ? lengths.shape()[1] : 1;
  for (std::int64_t length : lengths) {
    require(length >= 0 && static_cast<std::size_t>(length) <= keys, "valid_lengths",
            "a length must be from 0 to the number of keys", length, keys);
  }
  Mask mask(Shape{lengths.shape()[0], queries, keys});
  for (std::size_t row = 0; row < lengths.size(); ++row) std::fill_n(mask.data() + row * keys, lengths.data()[row], 1);
  return mask;
}

Mask padding(const Index& keys, std::int64_t padding_index) {
  require(keys.rank() == 2, "padding", "the keys must be (B,K)", keys.shape());
  Mask mask(Shape{keys.shape()[0], 1, keys.shape()[1]});
  std::transform(keys.begin(), keys.end(), mask.data(), [=](std::int64_t key) { return key != padding_index; });
  return mask;
}

Mask every_head(const Mask& mask) {
  require(mask.rank() == 3, "every_head", "the mask must be (B,Q,K)", mask.shape());
  return Mask(Shape{mask.shape()[0], 1, mask.shape()[1], mask.shape()[2]}, mask);
}

Tensor split_heads(const Tensor& x, std::size_t heads) {
  require(x.rank() == 3 && heads > 0 && x.shape()[2] % heads == 0, "split_heads",
          "x must be (B,T,H*D), with H the number of heads", x.shape(), heads);
  return permute(reshape(x, Shape{x.shape()[0], x.shape()[1], heads, x.shape()[2] / heads}), {0, 2, 1, 3});
}

Tensor join_heads(const Tensor& x) {
  require(x.rank() == 4, "join_heads", "x must be (B,H,T,D)", x.shape());
  return reshape(permute(x, {0, 2, 1, 3}), Shape{x.shape()[0], x.shape()[2], x.shape()[1] * x.shape()[3]});
}

Tensor masked_softmax(const Tensor& scores, const Mask& mask) {
  require(scores.rank() >= 1 && broadcasts_to(mask.shape(), scores.shape()), "masked_softmax",
          "the mask must broadcast to the scores", mask.shape(), scores.shape());
  const int last = static_cast<int>(scores.rank()) - 1;
  return record(
      "masked_softmax", Tensor(masked_softmax_values(scores.value(), mask)),
      [last]<class T>(const T& y, const T& dy, Unread, const Mask& mask, Sink<T> dx) {
        dx += softmax_backward(T(keep_where(dy, mask)), y, last);
      },
      scores, mask);
}

Tensor masked_softmax(const Tensor& scores, const Index& lengths) {
  require(scores.rank() == 3 && lengths.rank() >= 1 && lengths.shape()[0] == scores.shape()[0] &&
              (lengths.rank() == 1 || (lengths.rank() == 2 && lengths.shape()[1] == scores.shape()[1])),
          "masked_softmax", "scores must be (B,Q,K) and the lengths (B) or (B,Q)", scores.shape(), lengths.shape());
  return masked_softmax(scores, valid_lengths(lengths, scores.shape()[2]));
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options) {
  const AttentionLayout layout = layout_of(q, k, v, options, "scaled_dot_product_attention");
  const Mask& mask = options.mask ? *options.mask : everything();
  Array log_sums;
  if (!options.additive_mask.defined()) {
    Tensor y = attention_values(layout, q.value(), k.value(), v.value(), mask, nullptr, log_sums);
    return record(
        "scaled_dot_product_attention", std::move(y),
        [layout]<class T>(const T& y, const T& dy, const T& q, const T& k, const T& v, const Mask& mask,
                          const Saved& log_sums, Sink<T> dq, Sink<T> dk, Sink<T> dv) {
          backward(layout, y, dy, q, k, v, nullptr, mask, log_sums, dq, dk, dv, nullptr);
        },
        q, k, v, mask, Saved{Tensor(std::move(log_sums))});
  }
  const Tensor& additive = options.additive_mask;
  Tensor y = attention_values(layout, q.value(), k.value(), v.value(), mask, &additive.value(), log_sums);
  return record(
      "scaled_dot_product_attention", std::move(y),
      [layout]<class T>(const T& y, const T& dy, const T& q, const T& k, const T& v, const T& additive,
                        const Mask& mask, const Saved& log_sums, Sink<T> dq, Sink<T> dk, Sink<T> dv,
                        Sink<T> dadditive) {
        backward(layout, y, dy, q, k, v, &additive, mask, log_sums, dq, dk, dv, dadditive ? &dadditive : nullptr);
      },
      q, k, v, additive, mask, Saved{Tensor(std::move(log_sums))});
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options) {
  const AttentionLayout layout = layout_of(q, k, k, options, "attention_weights");
  const Mask mask = full_mask(layout, options.mask ? *options.mask : everything());
  return masked_softmax(scores_of(layout, split(layout, q), split(layout, k), options.additive_mask), mask);
}

}  // namespace TAPEGRAD
