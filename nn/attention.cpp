#include "nn/attention.hpp"

#include <numeric>

#include "autograd/kernels.hpp"
#include "nn/init.hpp"

namespace TAPEGRAD::nn {
namespace {

void linear_rows_backward(std::size_t first, const Array& dy, const Array& x, const Array& weight, Sink<Array> dx,
                          Sink<Array> dweight) {
  const std::size_t rows = dy.shape().back();
  const std::size_t in = weight.shape()[1];
  const std::size_t n = x.size() / in;
  if (Array* to = dx.buffer()) {
    gemm({dy.data(), rows, Transpose::no}, {weight.data() + first * in, in, Transpose::no}, to->data(), in,
         {n, in, rows}, 1, true);
  }
  if (Array* to = dweight.buffer()) {
    gemm({dy.data(), rows, Transpose::yes}, {x.data(), in, Transpose::no}, to->data() + first * in, in, {rows, in, n},
         1, true);
  }
}

void linear_rows_backward(std::size_t first, const Tensor& dy, const Tensor& x, const Tensor& weight, Sink<Tensor> dx,
                          Sink<Tensor> dweight) {
  const std::size_t rows = dy.extent(-1);
  const std::size_t in = weight.extent(1);
  const std::size_t n = x.size() / in;
  const auto start = static_cast<std::ptrdiff_t>(first);
  const auto stop = static_cast<std::ptrdiff_t>(first + rows);
  if (dx) dx += matmul(dy, slice(weight, 0, start, stop));
  if (dweight) {
    const Tensor part = matmul(reshape(dy, Shape{n, rows}), reshape(x, Shape{n, in}), Transpose::yes, Transpose::no);
    dweight += unslice(part, 0, start, stop, 1, weight.shape());
  }
}

/// linear(x, rows first, first + 1 ... of the weight) for x (B,T,in) -> (B,T,rows), without a copy of those rows.
Tensor linear_rows(const Tensor& x, const Tensor& weight, std::size_t first, std::size_t rows) {
  const std::size_t in = weight.extent(1);
  require(x.extent(2) == in, "linear", "x's last axis must equal the weight's second", x.shape(), weight.shape());
  Array y = empty_array({x.extent(0), x.extent(1), rows});
  gemm({x.value().data(), in, Transpose::no}, {weight.value().data() + first * in, in, Transpose::yes}, y.data(), rows,
       {x.size() / in, rows, in}, 1, false);
  return record(
      "linear", Tensor(std::move(y)),
      [first]<class T>(Unread, const T& dy, const T& x, const T& weight, Sink<T> dx, Sink<T> dweight) {
        linear_rows_backward(first, dy, x, weight, dx, dweight);
      },
      x, weight);
}

void require_sequences(const char* who, const Tensor& queries, const Tensor& keys, const Tensor& values) {
  require(queries.rank() == 3 && keys.rank() == 3 && values.rank() == 3, who,
          "queries, keys and values must be (B,T,width)", queries.shape(), keys.shape(), values.shape());
  require(queries.extent(0) == keys.extent(0) && keys.extent(0) == values.extent(0), who,
          "queries, keys and values must have the same batch", queries.shape(), keys.shape(), values.shape());
  require(keys.extent(1) == values.extent(1), who, "there must be a value for each key", keys.shape(), values.shape());
}

}  // namespace

Tensor Attention::attention_weights() const {
  require(weights_.defined(), "attention_weights", "no weights were kept: call keep_weights() before the module");
  return weights_;
}

Tensor Attention::dropped(const Tensor& weights) {
  if (keeps_) weights_ = weights.detach();
  return dropout_(weights);
}

Tensor Attention::attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  if (!needs_weights()) return scaled_dot_product_attention(q, k, v, options);
  return join_heads(matmul(dropped(tapegrad::attention_weights(q, k, options)), split_heads(v, options.heads)));
}

AdditiveAttention::AdditiveAttention(std::size_t query_size, std::size_t key_size, std::size_t hidden, Rng& rng,
                                     double p)
    : Attention(p, rng),
      W_q(child<Linear>("W_q", query_size, hidden, rng, false)),
      W_k(child<Linear>("W_k", key_size, hidden, rng, false)),
      w_v(child<Linear>("w_v", hidden, 1, rng, false)) {}

Tensor AdditiveAttention::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                     const std::optional<Mask>& mask) {
  const NamedScope name = named_scope();
  require_sequences("AdditiveAttention", queries, keys, values);
  const Tensor features = tanh(unsqueeze(W_q(queries), 2) + unsqueeze(W_k(keys), 1));  // (B,Q,K,hidden)
  const Tensor scores = squeeze(w_v(features), 3);
  return bmm(dropped(mask ? masked_softmax(scores, *mask) : softmax(scores, 2)), values);
}

Tensor DotProductAttention::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                       const std::optional<Mask>& mask) {
  const NamedScope name = named_scope();
  require_sequences("DotProductAttention", queries, keys, values);
  AttentionOptions options{.heads = 1};
  if (mask) options.mask = mask->rank() == 3 ? every_head(*mask) : *mask;
  const Tensor average = attend(queries, keys, values, options);
  if (keeps_) weights_ = squeeze(weights_, 1);
  return average;
}

MultiHeadAttention::MultiHeadAttention(std::size_t size, std::size_t heads, Rng& rng, const MultiHeadOptions& options)
    : Attention(options.dropout, rng), out_proj(size, size, rng, options.bias), size_(size), heads_(heads) {
  require(heads > 0 && size % heads == 0, "MultiHeadAttention", "the size must be divisible by the number of heads",
          size, heads);
  const std::size_t query_size = options.query_size ? options.query_size : size;
  const std::size_t key_size = options.key_size ? options.key_size : size;
  const std::size_t value_size = options.value_size ? options.value_size : size;
  const auto weight = [&](const char* name, std::size_t out, std::size_t in) {
    const Parameter made = param(name, zeros({out, in}));
    init::xavier_uniform(made, rng);
    return made;
  };
  if (query_size == size && key_size == size && value_size == size) {
    in_proj_weight = weight("in_proj_weight", 3 * size, size);
  } else {
    q_proj_weight = weight("q_proj_weight", size, query_size);
    k_proj_weight = weight("k_proj_weight", size, key_size);
    v_proj_weight = weight("v_proj_weight", size, value_size);
  }
  if (options.bias) {
    in_proj_bias = param("in_proj_bias", zeros({3 * size}));
    out_proj.bias.mutable_value() = Array(Shape{size}, Real(0));
  }
  child("out_proj", out_proj);  // after the others, as PyTorch lists them
}

Tensor MultiHeadAttention::project(const Tensor& x, std::size_t part) const {
  const std::size_t first = part * size_;
  const Tensor* apart[] = {&q_proj_weight, &k_proj_weight, &v_proj_weight};
  constexpr const char* rules[] = {"the queries' last axis must be query_size", "the keys' last axis must be key_size",
                                   "the values' last axis must be value_size"};
  const std::size_t width = in_proj_weight.defined() ? size_ : apart[part]->extent(1);
  require(x.extent(2) == width, "MultiHeadAttention", rules[part], x.shape(), width);
  const Tensor y = in_proj_weight.defined() ? linear_rows(x, in_proj_weight, first, size_) : linear(x, *apart[part]);
  if (!in_proj_bias.defined()) return y;
  return y + slice(in_proj_bias, 0, static_cast<std::ptrdiff_t>(first), static_cast<std::ptrdiff_t>(first + size_));
}

KeyValues MultiHeadAttention::keys_and_values(const Tensor& keys, const Tensor& values) const {
  require_sequences("MultiHeadAttention", keys, keys, values);
  const Tensor projected = project(values, 2);
  return {project(keys, 1), projected};
}

Tensor MultiHeadAttention::attend_to(const KeyValues& memory, const Tensor& queries, const AttentionOptions& options) {
  require_sequences("MultiHeadAttention", queries, memory.keys, memory.values);
  require(options.heads == 0, "MultiHeadAttention", "the number of heads is the module's own: leave it out",
          options.heads);
  AttentionOptions each = options;
  each.heads = heads_;
  if (each.mask && each.mask->rank() == 3) each.mask = every_head(*each.mask);
  if (each.additive_mask.defined() && each.additive_mask.rank() == 3)
    each.additive_mask = unsqueeze(each.additive_mask, 1);
  return out_proj(attend(project(queries, 0), memory.keys, memory.values, each));
}

Tensor MultiHeadAttention::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                      const AttentionOptions& options) {
  const NamedScope name = named_scope();
  return attend_to(keys_and_values(keys, values), queries, options);
}

Tensor MultiHeadAttention::operator()(const Tensor& x, KeyValues& cache) {
  const NamedScope name = named_scope();
  KeyValues all = keys_and_values(x, x);
  std::size_t before = 0;
  if (cache.keys.defined()) {
    require(cache.keys.rank() == 3 && cache.keys.extent(0) == x.extent(0), "MultiHeadAttention",
            "the cache must be of x's batch", cache.keys.shape(), x.shape());
    before = cache.keys.extent(1);
    all = {concat({cache.keys, all.keys}, 1), concat({cache.values, all.values}, 1)};
  }
  Index reach(Shape{1, x.extent(1)});  // how many positions each of x sees
  std::iota(reach.data(), reach.data() + reach.size(), static_cast<std::int64_t>(before + 1));
  const Tensor y = attend_to(all, x, {.mask = valid_lengths(reach, before + x.extent(1))});
  cache = all;
  return y;
}

}  // namespace TAPEGRAD::nn
