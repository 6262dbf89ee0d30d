/// Every op, declared once: the reference page of the engine.
///
/// Shapes are written (2,3); an axis may be negative and counts from the end then. Binary ops broadcast as NumPy does:
/// shapes are aligned at the right, an axis of extent 1 is repeated, and the gradient of a repeated operand is the sum
/// over the repeats. Every op can be differentiated to any order. A wrong shape or axis is refused with an Error.
#pragma once

#include <limits>
#include <optional>

#include "autograd/record.hpp"
#include "autograd/shapes.hpp"

namespace TAPEGRAD {

class Rng;

/// The extents that reshape takes: a Shape, or a list of integers of any type such as `{n, -1}`.
struct Extents {
  Extents(const Shape& shape) : values(shape.begin(), shape.end()) {}
  Extents(const std::vector<std::ptrdiff_t>& extents) : values(extents.begin(), extents.end()) {}
  template <std::integral... Integers>
  Extents(Integers... extents) : values{static_cast<std::ptrdiff_t>(extents)...} {}

  PoolVector<std::ptrdiff_t> values;
};

// ---- arithmetic: y = a op b, elementwise and broadcasting -----------------------------------------------------------

Tensor operator+(const Tensor& a, const Tensor& b);  ///< da = dy, db = dy
Tensor operator-(const Tensor& a, const Tensor& b);  ///< da = dy, db = -dy
Tensor operator*(const Tensor& a, const Tensor& b);  ///< da = dy b, db = dy a
/// da = dy / b, db = -dy a / b^2. Where b is 0 the gradient is what the chain rule gives, NaN for 0/0, and a mask
/// applied afterwards does not undo that: mask the divisor first, `where(mask, a / where(mask, b, 1), 0)`.
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& x);  ///< dx = -dy

Tensor operator+(const Tensor& a, Real b);
Tensor operator+(Real a, const Tensor& b);
Tensor operator-(const Tensor& a, Real b);
Tensor operator-(Real a, const Tensor& b);
Tensor operator*(const Tensor& a, Real b);
Tensor operator*(Real a, const Tensor& b);
Tensor operator/(const Tensor& a, Real b);
Tensor operator/(Real a, const Tensor& b);

/// A Tensor with an xtensor array or expression, which counts as a constant. (Constrained, so that they are chosen
/// before xtensor's own operators, which would take a Tensor for a number.)
template <class A, class B>
concept TensorWithArray = (std::derived_from<std::remove_cvref_t<A>, Tensor> &&
                           xt::is_xexpression<std::decay_t<B>>::value) ||
                          (std::derived_from<std::remove_cvref_t<B>, Tensor> &&
                           xt::is_xexpression<std::decay_t<A>>::value);
template <class A, class B>
requires TensorWithArray<A, B> Tensor operator+(A&& a, B&& b) { return Tensor(a) + Tensor(b); }
template <class A, class B>
requires TensorWithArray<A, B> Tensor operator-(A&& a, B&& b) { return Tensor(a) - Tensor(b); }
template <class A, class B>
requires TensorWithArray<A, B> Tensor operator*(A&& a, B&& b) { return Tensor(a) * Tensor(b); }
template <class A, class B>
requires TensorWithArray<A, B> Tensor operator/(A&& a, B&& b) { return Tensor(a) / Tensor(b); }

/// The handle a is made to point to the result; other handles to a's old value keep it.
template <class T>
Tensor& operator+=(Tensor& a, const T& b) {
  return a = a + b;
}
template <class T>
Tensor& operator-=(Tensor& a, const T& b) {
  return a = a - b;
}
template <class T>
Tensor& operator*=(Tensor& a, const T& b) {
  return a = a * b;
}
template <class T>
Tensor& operator/=(Tensor& a, const T& b) {
  return a = a / b;
}
// Not for a Parameter, which would be another one than its module has registered: change its mutable_value().
template <class T>
Tensor& operator+=(Parameter& a, const T& b) = delete;
template <class T>
Tensor& operator-=(Parameter& a, const T& b) = delete;
template <class T>
Tensor& operator*=(Parameter& a, const T& b) = delete;
template <class T>
Tensor& operator/=(Parameter& a, const T& b) = delete;

/// y = a^b, da = dy b a^(b-1), db = dy a^b log a (0 where a = 0 and b >= 0). Values and gradients at
/// a = 0 are exact for b = 0, 1, 2: x^0 = 1 with gradient 0.
Tensor pow(const Tensor& a, const Tensor& b);
/// y = a^b for a fixed exponent; the exponents 0, 1, 2, 3, -1 and 0.5 are computed by multiplication, division and
/// sqrt.
Tensor pow(const Tensor& a, Real exponent);

/// The larger and the smaller element; NaN if either is. A tie gives half of dy to each.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);

// ---- comparisons: Masks, broadcasting; no gradient; false where either is NaN, but != is true -----------------------

Mask operator<(const Tensor& a, const Tensor& b);
Mask operator<=(const Tensor& a, const Tensor& b);
Mask operator>(const Tensor& a, const Tensor& b);
Mask operator>=(const Tensor& a, const Tensor& b);
Mask operator==(const Tensor& a, const Tensor& b);
Mask operator!=(const Tensor& a, const Tensor& b);

// ---- pointwise ------------------------------------------------------------------------------------------------------

Tensor exp(const Tensor& x);       ///< dx = dy y. In float, inf from x = 88.57 and 0 below -88.4
Tensor log(const Tensor& x);       ///< dx = dy / x
Tensor log1p(const Tensor& x);     ///< log(1 + x), accurate near 0; dx = dy / (1 + x)
Tensor sqrt(const Tensor& x);      ///< dx = dy / (2 y): +inf at 0
Tensor square(const Tensor& x);    ///< dx = 2 dy x
Tensor abs(const Tensor& x);       ///< dx = dy sign(x), 0 at 0
Tensor sign(const Tensor& x);      ///< -1, 0 or 1; NaN stays; dx = 0
Tensor sin(const Tensor& x);       ///< dx = dy cos x
Tensor cos(const Tensor& x);       ///< dx = -dy sin x
Tensor tanh(const Tensor& x);      ///< dx = dy (1 - y^2)
Tensor sigmoid(const Tensor& x);   ///< 1 / (1 + e^-x); dx = dy y (1 - y)
Tensor softplus(const Tensor& x);  ///< log(1 + e^x); dx = dy sigmoid(x)
Tensor relu(const Tensor& x);      ///< max(x, 0), NaN stays; dx = dy where x > 0 (0 at 0)
Tensor erf(const Tensor& x);       ///< dx = dy 2/sqrt(pi) e^-x^2
/// x s, s = sigmoid(x) (Hendrycks and Gimpel, 2016); dx = dy s (1 + x (1 - s)).
Tensor silu(const Tensor& x);
/// x Phi(x), Phi the standard normal distribution function (Hendrycks and Gimpel, 2016); dx = dy (Phi(x) + x phi(x)).
Tensor gelu(const Tensor& x);
/// The tanh approximation of gelu: x/2 (1 + t), t = tanh(sqrt(2/pi) (x + 0.044715 x^3));
/// dx = dy ((1 + t) / 2 + x/2 (1 - t^2) sqrt(2/pi) (1 + 0.134145 x^2)).
Tensor gelu_tanh(const Tensor& x);
/// x limited to [low, high]; NaN stays; dx = dy where low < x < high (0 at the limits). Refuses low > high.
Tensor clamp(const Tensor& x, Real low, Real high);

// ---- reductions: over the listed axes (all of them when none is listed) ---------------------------------------------
// keepdim keeps a reduced axis with extent 1. An axis listed twice is refused.

Tensor sum(const Tensor& x, Axes axes = {}, bool keepdim = false);   ///< accurate at any size; 0 of nothing; dx = dy
Tensor mean(const Tensor& x, Axes axes = {}, bool keepdim = false);  ///< dx = dy / n; NaN of nothing
/// Variance, sum (x - mean)^2 / (n - correction); dx = 2 dy (x - mean) / (n - correction). Not finite unless n is above
/// the correction.
Tensor var(const Tensor& x, Axes axes = {}, Real correction = 1, bool keepdim = false);
/// Largest and smallest element; NaN if there is one. Ties share dy equally. Refuses to reduce nothing.
Tensor amax(const Tensor& x, Axes axes = {}, bool keepdim = false);
Tensor amin(const Tensor& x, Axes axes = {}, bool keepdim = false);
/// log sum e^x without overflow; -inf where every x is -inf, with gradient 0; dx = dy e^(x - y).
Tensor logsumexp(const Tensor& x, Axes axes = {}, bool keepdim = false);
/// Product over one axis; dx = dy times the product of the other elements, right where elements are 0.
Tensor prod(const Tensor& x, int axis, bool keepdim = false);
/// sqrt(sum x^2); dx = dy x / y, and 0 where y is 0.
Tensor norm(const Tensor& x, Axes axes = {}, bool keepdim = false);
/// x summed down to a shape that broadcasts to x's: the adjoint of broadcast_to.
Tensor sum_to(const Tensor& x, const Shape& shape);

/// Position of the first largest element (of the first NaN, if any) along an axis; no gradient. Refuses an empty axis.
Index argmax(const Tensor& x, int axis, bool keepdim = false);

// ---- along one axis -------------------------------------------------------------------------------------------------

/// e^x / sum e^x along the axis, without overflow; NaN where every x is -inf. dx = y (dy - sum dy y).
Tensor softmax(const Tensor& x, int axis);
/// x - logsumexp(x); dx = dy - e^y sum dy.
Tensor log_softmax(const Tensor& x, int axis);
/// Running sums y_i = x_0 + ... + x_i; reverse sums from the end instead. Each is the other's gradient.
Tensor cumsum(const Tensor& x, int axis, bool reverse = false);
/// Values in ascending order (stable, NaN last); dx puts each dy back where its value came from.
Tensor sort(const Tensor& x, int axis = -1);
/// The positions that sort would take the values from; no gradient.
Index argsort(const Tensor& x, int axis = -1);

// ---- products -------------------------------------------------------------------------------------------------------

/// Matrix product as NumPy's: (...,M,K) (...,K,N) -> (...,M,N), batch axes broadcast; a 1-D factor is a row on the
/// left, a column on the right, and its axis is dropped from the result. da = dy b^T, db = a^T dy, summed over batch
/// axes along which the factor was repeated. A factor may be transposed first. An inner extent of 0 gives zeros.
Tensor matmul(const Tensor& a, const Tensor& b, Transpose transpose_a = Transpose::no,
              Transpose transpose_b = Transpose::no);
/// (B,M,K) (B,K,N) -> (B,M,N): matmul without broadcasting.
Tensor bmm(const Tensor& a, const Tensor& b, Transpose transpose_a = Transpose::no,
           Transpose transpose_b = Transpose::no);
/// x (...,in) times weight (out,in) transposed, plus bias (out) if defined -> (...,out). dx = dy weight; with all axes
/// but the last as one, dweight = dy^T x and dbias = sum dy.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// ---- convolution ----------------------------------------------------------------------------------------------------

/// Cross-correlation y[b,o,l] = bias[o] + sum_{c,k} weight[o,c,k] x[b,c,l stride + k - padding], x being 0 outside
/// (what PyTorch calls conv1d): x (B,C,N), weight (O,C,K), bias (O) if defined -> (B,O,L), L = floor((N + 2 padding -
/// K) / stride) + 1. Computed as unfold1d and a matrix product, which holds (B,C*K,L) numbers: dx =
/// fold1d(weight^T dy), dweight = sum_b dy unfold1d(x)^T with its axes in the weight's shape, dbias = sum_{b,l} dy.
/// Refuses a stride below 1, a negative padding, and a kernel that is empty or longer than N + 2 padding.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, std::ptrdiff_t stride = 1,
              std::ptrdiff_t padding = 0);
/// The windows of x (B,C,N) as columns (B,C*K,L): y[b,c K + k,l] = x[b,c,l stride + k - padding]. Refusals as conv1d's.
Tensor unfold1d(const Tensor& x, const Window& window);
/// The adjoint of unfold1d: columns (B,C*K,L) added up where they were read -> (B,C,extent).
Tensor fold1d(const Tensor& columns, const Window& window, std::size_t extent);

// ---- shape ----------------------------------------------------------------------------------------------------------
// Each only moves elements: dy moves back, and adds up where an element went to several places.

/// The same elements in another shape; at most one extent may be -1, as in `{n, -1}`, and is found from the others.
/// Refuses -1 beside an extent of 0, where any number would do.
Tensor reshape(const Tensor& x, const Extents& shape);
/// Axis i of the result is axis axes[i] of x.
Tensor permute(const Tensor& x, Axes axes);
Tensor transpose(const Tensor& x, int axis0, int axis1);
Tensor unsqueeze(const Tensor& x, int axis);  ///< a new axis of extent 1 there
Tensor squeeze(const Tensor& x, int axis);    ///< without that axis; refused unless its extent is 1
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// x repeated repeats[i] times along axis i; more repeats than axes add leading axes (NumPy's tile). Fewer are refused.
Tensor repeat(const Tensor& x, const std::vector<std::size_t>& repeats);
/// Each element repeated in place along the axis: [a, b] -> [a, a, b, b].
Tensor repeat_interleave(const Tensor& x, std::size_t repeats, int axis);
Tensor repeat_interleave(const Tensor& x, std::size_t repeats);  ///< of x flattened
Tensor concat(const std::vector<Tensor>& xs, int axis);          ///< equal shapes but for that axis
Tensor stack(const std::vector<Tensor>& xs, int axis);           ///< along a new axis; equal shapes
/// Elements start, start + step, ... below stop along the axis, as Python's x[start:stop:step]: negative positions
/// count from the end, positions beyond the ends are moved there. Refuses step < 1.
Tensor slice(const Tensor& x, int axis, std::ptrdiff_t start, std::ptrdiff_t stop, std::ptrdiff_t step = 1);
/// The adjoint of slice: zeros of that shape, with x at the places that slice would take.
Tensor unslice(const Tensor& x, int axis, std::ptrdiff_t start, std::ptrdiff_t stop, std::ptrdiff_t step,
               const Shape& shape);
/// The last two axes below (tril) or above (triu) a diagonal, itself included; zeros elsewhere.
Tensor tril(const Tensor& x, int diagonal = 0);
Tensor triu(const Tensor& x, int diagonal = 0);

// ---- index and mask -------------------------------------------------------------------------------------------------
// Positions must be at least 0 and below the axis's extent.

/// x at the positions index (1-D) along the axis. dx adds up where a position occurs more than once.
Tensor index_select(const Tensor& x, int axis, const Index& index);
/// x with source added at the positions index along the axis: the adjoint of index_select. dx = dy, dsource = dy at the
/// positions.
Tensor index_add(const Tensor& x, int axis, const Index& index, const Tensor& source);
/// y[i,j,k] = x[i,index[i,j,k],k] for axis 1: index has x's rank, and extents at most x's off the axis. dx adds up
/// where a place is read more than once.
Tensor gather(const Tensor& x, int axis, const Index& index);
/// The adjoint of gather: zeros of that shape, with each x added where gather would read. x has index's shape.
Tensor scatter_add(const Tensor& x, int axis, const Index& index, const Shape& shape);
/// The elements where the mask (broadcast to x's shape) is true, in row-major order: 1-D.
Tensor masked_select(const Tensor& x, const Mask& mask);
/// The adjoint of masked_select: the elements of x (1-D) put where the mask is true, zeros elsewhere; the mask's shape.
Tensor masked_scatter(const Tensor& x, const Mask& mask);
/// x where the mask (broadcast to x's shape) is false, value where it is true; dx = dy where it is false.
Tensor masked_fill(const Tensor& x, const Mask& mask, Real value);
/// x where the mask is true, exactly 0 elsewhere, whatever x is there; mask and x broadcast. dx is the same of dy.
Tensor keep_where(const Tensor& x, const Mask& mask);
/// a where the mask is true, else b; all three broadcast. Gradients where an operand was not chosen are exactly 0.
Tensor where(const Mask& mask, const Tensor& a, const Tensor& b);

/// Row index[...] of weight (V,D) for each index (...) -> (...,D). dweight adds up where an index occurs more than
/// once, in the order of the indices; the row `padding`, if given, gets none, whatever it holds. Refuses an index, or a
/// padding, outside 0 ... V-1.
Tensor embedding(const Index& index, const Tensor& weight, std::optional<std::int64_t> padding = {});

// ---- dropout and normalisation --------------------------------------------------------------------------------------

/// Each element 0 with probability p, else x / (1-p), so that the mean stays (Srivastava et al., 2014). dx is the same
/// of dy. p = 0 gives x itself, p = 1 exact zeros and zero gradients. Refuses a p outside [0,1].
Tensor dropout(const Tensor& x, double p, Rng& rng);

/// y = (x - mean) / sqrt(variance + eps) weight + bias over the last axes, whose extents normalized_shape lists (Ba et
/// al., 2016); the variance is the mean square of x - mean. weight and bias, where defined, have normalized_shape.
/// Right to the last bits however large the mean. With z the normalised x and g = dy weight: dx = (g - mean g - z
/// mean(g z)) / sqrt(variance + eps), dweight = sum dy z, dbias = sum dy. Rows that are all equal give bias. Refuses a
/// normalized_shape that is empty or not that of x's last axes, and a negative eps.
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  Real eps = Real(1e-5));
/// y = x / sqrt(mean x^2 + eps) weight over the last axes, those that weight has (Zhang and Sennrich, 2019); the
/// gradient is layer_norm's without mean g. Refusals as layer_norm's.
Tensor rms_norm(const Tensor& x, const Tensor& weight, Real eps = std::numeric_limits<Real>::epsilon());

// ---- attention ------------------------------------------------------------------------------------------------------
// B batch, H heads, Q queries, K keys, D width of queries and keys, V width of values, T any length.
// Masks are true where a query may attend to a key; combine them with &&. A query that may attend to nothing gets
// zeros, and sends back zero gradients.

/// (queries, keys): query i may attend to the keys 0 ... i.
Mask causal(std::size_t queries, std::size_t keys);
Mask causal(std::size_t n);
/// Lengths (B) -> (B,1,keys), or (B,Q) -> (B,Q,keys): the first lengths[...] keys are true. Refuses a length above
/// keys.
Mask valid_lengths(const Index& lengths, std::size_t keys);
/// Keys (B,K) -> (B,1,K): true where the key is not the padding.
Mask padding(const Index& keys, std::int64_t padding_index);
/// (B,Q,K) -> (B,1,Q,K): the same mask for every head.
Mask every_head(const Mask& mask);

/// Heads that lie side by side in the rows, each made a matrix: (B,T,H*D) -> (B,H,T,D); and back. dx moves back.
Tensor split_heads(const Tensor& x, std::size_t heads);
Tensor join_heads(const Tensor& x);

/// Softmax over the last axis among the scores that the mask (broadcast to them) keeps; exactly 0 elsewhere, whatever
/// the scores. dx = y (dy - sum dy y).
Tensor masked_softmax(const Tensor& scores, const Mask& mask);
/// Scores (B,Q,K) with the first lengths (B) or (B,Q) keys kept. Where a length is 0 the row is zeros; Dive into Deep
/// Learning's function gives 1/K there.
Tensor masked_softmax(const Tensor& scores, const Index& lengths);

struct AttentionOptions {
  std::optional<Mask> mask = {};   // broadcasts to (B,H,Q,K); of (B,Q,K) take every_head
  Tensor additive_mask = {};       // added to the scores; broadcasts to (B,H,Q,K); has a gradient
  bool causal = false;             // query i may attend to the keys 0 ... i, besides what the masks say
  std::optional<Real> scale = {};  // of the scores; 1/sqrt(D) when left out
  std::size_t heads = 0;           // when given, heads lie side by side in the rows: q (B,Q,H*D), k, v likewise
};

/// softmax(q k^T scale) v for q (B,H,Q,D), k (B,H,K,D), v (B,H,K,V) -> (B,H,Q,V) (Vaswani et al., 2017, equation 1), or
/// for (B,Q,H*D), (B,K,H*D), (B,K,H*V) -> (B,Q,H*V) when the heads are given. Refuses masks of three axes where H > 1:
/// (B,Q,K) would be taken for (H,Q,K). With P the weights, dP = dy v^T and dS = P (dP - sum dP P): dq = dS k scale,
/// dk = dS^T q scale, dv = P^T dy, and the additive mask's is dS. One pass, forward and backward, that holds the scores
/// of a few queries at a time, so memory grows with Q + K, not Q K; keys that no mask lets through are skipped.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});
/// The weights (B,H,Q,K) that scaled_dot_product_attention averages v with, for drawing or for dropout. Refusals as
/// there.
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options = {});

// ---- constants ------------------------------------------------------------------------------------------------------

Tensor zeros(const Shape& shape);
Tensor ones(const Shape& shape);
Tensor full(const Shape& shape, Real value);
Tensor eye(std::size_t n);  ///< the identity matrix
/// start, start + step, ... below stop (above it for a negative step). Refuses a step of 0.
Tensor arange(Real start, Real stop, Real step = 1);
Tensor arange(std::size_t n);                        ///< 0, 1, ... n-1
Tensor arange(std::floating_point auto n) = delete;  // it would be cut to an integer: give start and stop
/// (..., classes) of zeros, with a one at each index. Refuses an index outside 0 ... classes-1.
Tensor one_hot(const Index& index, std::size_t classes);

// ---- losses ---------------------------------------------------------------------------------------------------------

/// What becomes of the losses: nothing, their mean, their sum, or their sum divided by the first axis's extent. The
/// mean and batch_mean of no losses are NaN, except that of labels, which says below what it is.
enum class Reduction { none, mean, sum, batch_mean };

/// (prediction - target)^2, reduced; gradients +-2 dy (prediction - target), - for the target. Here and below, dy is
/// that of each loss, so that a mean sends dy / n to each; shapes must be equal: (N,1) against (N) is refused.
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);
/// |prediction - target|, reduced; gradients +-dy sign(prediction - target), 0 where they are equal.
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);
/// d^2 / (2 beta) where d = |prediction - target| is below beta, else d - beta / 2, reduced (Girshick, 2015);
/// gradients +-dy times prediction - target over beta, limited to [-1, 1]. Refuses a negative beta; with 0 it is
/// l1_loss.
Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
                      Real beta = 1);
/// -target log s(logits) - (1 - target) log(1 - s(logits)), s the sigmoid, reduced; accurate for logits of any size and
/// targets from 0 to 1. dlogits = dy (s(logits) - target), dtarget = -dy logits.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target,
                                        Reduction reduction = Reduction::mean);
/// Kullback-Leibler divergence target (log target - log_probabilities), reduced, as PyTorch's kl_div: the first operand
/// holds logarithms, the target probabilities. dlog_probabilities = -dy target, dtarget = dy (log target + 1 -
/// log_probabilities). Where target is 0 the value and both gradients are exactly 0.
Tensor kl_div(const Tensor& log_probabilities, const Tensor& target, Reduction reduction = Reduction::mean);

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  std::int64_t ignore_index = -100;  // the label of what does not count
  double label_smoothing = 0;        // from 0 to 1
  int class_axis = -1;               // of the logits; 1 where they are (N,C,...), as PyTorch has them
};

/// -log softmax(logits)[label] over the class axis, for labels (the logits' shape without that axis), reduced; one pass
/// forward and one backward, accurate for logits of any size. With smoothing s it is (1-s) times that plus s times the
/// mean of -log softmax over all classes (Szegedy et al., 2016), as PyTorch's. dlogits = dy (softmax - (1-s) [label] -
/// s/C). The mean is over the labels that count; a label that does not count gives loss 0 and zero gradients, whatever
/// its logits, and where none counts the mean is 0 too (PyTorch's is NaN), so that a batch of padding changes nothing.
/// Refuses a label that is neither ignore_index nor in 0 ... C-1, and no classes at all.
Tensor cross_entropy(const Tensor& logits, const Index& labels, const CrossEntropyOptions& options = {});
/// -log_probabilities[label], reduced; the gradient is -dy there and 0 elsewhere; labels, ignore_index, class axis and
/// the mean as for cross_entropy.
Tensor nll_loss(const Tensor& log_probabilities, const Index& labels, Reduction reduction = Reduction::mean,
                std::int64_t ignore_index = -100, int class_axis = -1);

}  // namespace TAPEGRAD
