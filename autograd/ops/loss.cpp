#include <cmath>

#include "autograd/rules.hpp"

namespace TAPEGRAD {
namespace {

/// What the sum of the losses is multiplied by; `counted` of them count for the mean.
Real scale_of(Reduction reduction, std::size_t counted, const Shape& shape, const char* op) {
  if (reduction == Reduction::mean) return Real(1) / static_cast<Real>(counted);
  if (reduction != Reduction::batch_mean) return Real(1);
  require(!shape.empty(), op, "batch_mean needs a first axis", shape);
  return Real(1) / static_cast<Real>(shape[0]);
}

Tensor reduced(const Tensor& losses, Reduction reduction, const char* op) {
  if (reduction == Reduction::none) return losses;
  return sum(losses) * scale_of(reduction, losses.size(), losses.shape(), op);
}

void require_equal_shapes(const Tensor& a, const Tensor& b, const char* op, const char* rule) {
  require(a.shape() == b.shape(), op, rule, a.shape(), b.shape());
}

constexpr const char* kPredictionAndTarget = "prediction and target must have equal shapes";

}  // namespace

// ---- of numbers -----------------------------------------------------------------------------------------------------

Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  require_equal_shapes(prediction, target, "mse_loss", kPredictionAndTarget);
  return reduced(square(prediction - target), reduction, "mse_loss");
}

Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  require_equal_shapes(prediction, target, "l1_loss", kPredictionAndTarget);
  return reduced(abs(prediction - target), reduction, "l1_loss");
}

Tensor smooth_l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction, Real beta) {
  require(beta >= 0, "smooth_l1_loss", "beta must not be negative", beta);
  require_equal_shapes(prediction, target, "smooth_l1_loss", kPredictionAndTarget);
  const Tensor difference = prediction - target;
  if (beta == 0) return reduced(abs(difference), reduction, "smooth_l1_loss");
  const Tensor near = clamp(difference, -beta, beta);
  return reduced(near * (difference - near * Real(0.5)) / beta, reduction, "smooth_l1_loss");
}

Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
  const char* op = "binary_cross_entropy_with_logits";
  require_equal_shapes(logits, target, op, "logits and target must have equal shapes");
  // The target's share of |x| and the rest of softplus are both positive, so that nothing cancels.
  const auto loss = [](Real x, Real t) { return (x > 0 ? (1 - t) * x : -t * x) + std::log1p(std::exp(-std::abs(x))); };
  const Tensor losses = record(
      op, Tensor(broadcast_apply(logits.value(), target.value(), loss)),
      []<class T>(Unread, const T& dy, const T& x, const T& t, Sink<T> dx, Sink<T> dt) {
        if (dx) dx += dy * (sigmoid(x) - t);
        if (dt) dt += -dy * x;
      },
      logits, target);
  return reduced(losses, reduction, op);
}

Tensor kl_div(const Tensor& log_probabilities, const Tensor& target, Reduction reduction) {
  require_equal_shapes(log_probabilities, target, "kl_div", "log_probabilities and target must have equal shapes");
  const Mask counted = target != Tensor(0);
  const Tensor p = where(counted, target, Tensor(1));  // whose logarithm is 0
  return reduced(p * (log(p) - keep_where(log_probabilities, counted)), reduction, "kl_div");
}

// ---- of classes -----------------------------------------------------------------------------------------------------

namespace {

/// True where a label counts, with an axis of extent 1 for the classes. Refuses labels that don't fit the scores.
Mask counted_labels(const Tensor& scores, const Index& labels, std::size_t axis, std::int64_t ignore_index,
                    const char* op) {
  Shape without_classes = scores.shape();
  without_classes.erase(without_classes.begin() + static_cast<std::ptrdiff_t>(axis));
  require(labels.shape() == without_classes, op, "labels must have the scores' shape without the class axis",
          labels.shape(), scores.shape());
  const std::size_t classes = scores.shape()[axis];
  require(classes > 0, op, "there must be a class", scores.shape());
  require_labels(labels, classes, ignore_index, op);
  Mask counted(reduced_shape(scores.shape(), static_cast<int>(axis), true));
  std::transform(labels.begin(), labels.end(), counted.data(),
                 [=](std::int64_t label) { return label != ignore_index; });
  return counted;
}

/// As scale_of, but 1 where no label counts, so that a mean of nothing is 0.
Real label_scale(Reduction reduction, const Mask& counted, const Index& labels, const char* op) {
  const std::size_t count = count_true(counted);
  return count == 0 ? Real(1) : scale_of(reduction, count, labels.shape(), op);
}

/// What the softmax should be: 1 at the label, but for the smoothing's share, which goes to all classes.
Array smoothed_one_hot(const Shape& shape, const Index& labels, const ClassOptions& options) {
  const AxisView view(shape, options.axis);
  require_labels(labels, view.extent, options.ignore_index, "cross_entropy");  // they may have been written to since
  Array target(shape, options.smoothing / static_cast<Real>(view.extent));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels.data()[row] == options.ignore_index) continue;
    const std::size_t at = row / view.inner * view.extent + static_cast<std::size_t>(labels.data()[row]);
    target.data()[at * view.inner + row % view.inner] += 1 - options.smoothing;
  }
  return target;
}

/// The rule of cross_entropy on arrays: the fused kernel.
void backward(const ClassOptions& options, const Array& dy, const Array& logits, const Index& labels, const Mask&,
              const Saved& statistics, const Sink<Array>& dlogits) {
  if (Array* sum = dlogits.buffer()) {
    cross_entropy_backward(dy, logits, labels, statistics.array.value(), options, *sum);
  }
}

/// The rule on Tensors: composed of ops, so that it can be differentiated again.
void backward(const ClassOptions& options, const Tensor& dy, const Tensor& logits, const Index& labels,
              const Mask& counted, const Saved&, const Sink<Tensor>& dlogits) {
  const int axis = static_cast<int>(options.axis);
  const Tensor g = (dy.rank() == labels.rank() ? unsqueeze(dy, axis) : dy) * options.scale;
  const Tensor error =
      softmax(keep_where(logits, counted), axis) - Tensor(smoothed_one_hot(logits.shape(), labels, options));
  if (dlogits) dlogits += error * keep_where(g, counted);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Index& labels, const CrossEntropyOptions& options) {
  const char* op = "cross_entropy";
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1, op, "label_smoothing must be from 0 to 1",
          options.label_smoothing);
  const std::size_t axis = normalize_axis(options.class_axis, logits.rank(), op);
  const Mask counted = counted_labels(logits, labels, axis, options.ignore_index, op);
  const ClassOptions settings{axis, options.ignore_index, static_cast<Real>(options.label_smoothing),
                              label_scale(options.reduction, counted, labels, op)};
  Array statistics;
  Array losses = cross_entropy_values(logits.value(), labels, settings, statistics);
  Tensor y = options.reduction == Reduction::none
                 ? Tensor(std::move(losses))
                 : Tensor(reduce_sum(losses, normalize_axes({}, labels.rank(), op), false) * settings.scale);
  return record(
      op, std::move(y),
      [settings]<class T>(Unread, const T& dy, const T& logits, const Index& labels, const Mask& counted,
                          const Saved& statistics,
                          Sink<T> dlogits) { backward(settings, dy, logits, labels, counted, statistics, dlogits); },
      logits, labels, counted, Saved{Tensor(std::move(statistics))});
}

Tensor nll_loss(const Tensor& log_probabilities, const Index& labels, Reduction reduction, std::int64_t ignore_index,
                int class_axis) {
  const std::size_t axis = normalize_axis(class_axis, log_probabilities.rank(), "nll_loss");
  const Mask counted = counted_labels(log_probabilities, labels, axis, ignore_index, "nll_loss");
  Index picked(counted.shape());
  std::transform(labels.begin(), labels.end(), picked.data(),
                 [=](std::int64_t label) { return label == ignore_index ? 0 : label; });
  const Tensor kept = keep_where(gather(log_probabilities, static_cast<int>(axis), picked), counted);
  const Tensor losses = -squeeze(kept, static_cast<int>(axis));
  if (reduction == Reduction::none) return losses;
  return sum(losses) * label_scale(reduction, counted, labels, "nll_loss");
}

}  // namespace TAPEGRAD
