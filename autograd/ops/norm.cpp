#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

/// The rule on arrays: the kernel, which adds to all gradients in one pass.
void backward(const NormOptions& options, const Array& dy, const Array& x, const Array& weight, const Saved& statistics,
              const Sink<Array>& dx, const Sink<Array>& dweight, const Sink<Array>* dbias) {
  const auto [to, add] = dx.room();
  norm_backward(dy, x, weight, statistics.array.value(), options.centred, to, add, dweight.buffer(),
                dbias ? dbias->buffer() : nullptr);
}

/// The rule on Tensors: the formula composed of ops, so that it can be differentiated again.
void backward(const NormOptions& options, const Tensor& dy, const Tensor& x, const Tensor& weight, const Saved&,
              const Sink<Tensor>& dx, const Sink<Tensor>& dweight, const Sink<Tensor>* dbias) {
  Axes axes(std::vector<int>(weight.rank()));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(x.rank() - weight.rank() + i);
  const Real count = static_cast<Real>(weight.size());
  const auto mean_of = [&](const Tensor& v) { return reduce_sum(v, axes, true) / count; };
  const Tensor centred = options.centred ? x - mean_of(x) : x;
  const Tensor variance = mean_of(square(centred)) + options.eps;
  const Mask zero = variance == Tensor(0);
  const Tensor factor = keep_where(Real(1) / sqrt(where(zero, Tensor(1), variance)), !zero);
  const Tensor y = centred * factor;
  if (dx) {
    const Tensor g = dy * weight;
    const Tensor along = g - y * mean_of(g * y);
    dx += factor * (options.centred ? along - mean_of(g) : along);
  }
  if (dweight) dweight += dy * y;
  if (dbias) *dbias += dy;
}

void require_trailing(const Tensor& x, const Shape& normalized, Real eps, const char* op) {
  const std::size_t lead = x.rank() - std::min(x.rank(), normalized.size());
  require(!normalized.empty() &&
              std::equal(normalized.begin(), normalized.end(), x.shape().begin() + lead, x.shape().end()),
          op, "the normalised shape must be that of x's last axes, at least one", normalized, x.shape());
  require(eps >= 0, op, "eps must not be negative", eps);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias, Real eps) {
  require_trailing(x, normalized_shape, eps, "layer_norm");
  const Tensor scale = weight.defined() ? weight : ones(normalized_shape);
  const Tensor shift = bias.defined() ? bias : zeros(normalized_shape);
  require(scale.shape() == normalized_shape && shift.shape() == normalized_shape, "layer_norm",
          "weight and bias must have the normalised shape", scale.shape(), shift.shape(), normalized_shape);
  const NormOptions options{true, eps};
  Array statistics;
  Tensor y = norm_values(x.value(), scale.value(), &shift.value(), options, statistics);
  return record(
      "layer_norm", std::move(y),
      [options]<class T>(Unread, const T& dy, const T& x, const T& weight, Unread, const Saved& statistics, Sink<T> dx,
                         Sink<T> dweight,
                         Sink<T> dbias) { backward(options, dy, x, weight, statistics, dx, dweight, &dbias); },
      x, scale, shift, Saved{Tensor(std::move(statistics))});
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, Real eps) {
  require_trailing(x, weight.shape(), eps, "rms_norm");
  const NormOptions options{false, eps};
  Array statistics;
  Tensor y = norm_values(x.value(), weight.value(), nullptr, options, statistics);
  return record(
      "rms_norm", std::move(y),
      [options]<class T>(Unread, const T& dy, const T& x, const T& weight, const Saved& statistics, Sink<T> dx,
                         Sink<T> dweight) {
        const Sink<T>* const no_bias = nullptr;
        backward(options, dy, x, weight, statistics, dx, dweight, no_bias);
      },
      x, weight, Saved{Tensor(std::move(statistics))});
}

}  // namespace TAPEGRAD
