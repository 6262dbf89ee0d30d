#include <cmath>

#include "autograd/kernels.hpp"
#include "autograd/kernels/parallel.hpp"
#include "autograd/simd.hpp"

namespace TAPEGRAD {
namespace {

using simd::Batch;

// Rows that one thread takes at a time.
constexpr std::size_t kBlock = 16;

/// f(label, row of logits, number of the row, its offset in the logits) for every label that counts. Where the classes
/// are not the last axis, the row is a copy; there one thread does it all.
template <class F>
void for_each_counted(const Array& logits, const Index& labels, const ClassOptions& options, F f) {
  const AxisView view(logits.shape(), options.axis);
  const bool contiguous = view.inner == 1;
  PoolVector<Real> copy(contiguous ? 0 : view.extent);
  parallel_for((labels.size() + kBlock - 1) / kBlock, contiguous && logits.size() >= kParallel, [&](std::size_t block) {
    const std::size_t end = std::min(labels.size(), (block + 1) * kBlock);
    for (std::size_t row = block * kBlock; row < end; ++row) {
      const std::int64_t label = labels.data()[row];
      if (label == options.ignore_index) continue;
      const std::size_t offset = row / view.inner * view.extent * view.inner + row % view.inner;
      const Real* from = logits.data() + offset;
      if (!contiguous) {
        for (std::size_t k = 0; k < view.extent; ++k) copy[k] = from[k * view.inner];
        from = copy.data();
      }
      f(static_cast<std::size_t>(label), from, row, offset);
    }
  });
}

}  // namespace

Array cross_entropy_values(const Array& logits, const Index& labels, const ClassOptions& options, Array& statistics) {
  const std::size_t classes = logits.shape()[options.axis];
  const auto smoothing = static_cast<double>(options.smoothing);
  Array losses(labels.shape(), Real(0));
  statistics = Array(Shape{labels.size(), 2}, Real(0));
  for_each_counted(logits, labels, options, [&](std::size_t label, const Real* x, std::size_t row, std::size_t) {
    const Real top = simd::max(x, classes);
    const Real total = simd::sum_exp_of_difference(x, top, classes);
    const double log_total = std::log(static_cast<double>(total));
    // Differences from the largest logit, since the logits themselves may be so large that a loss drowns in them.
    double loss = log_total - (static_cast<double>(x[label]) - top);
    if (smoothing > 0) {
      const double others = simd::sum_of(x, classes, [=](const Batch& b) { return b - top; });
      loss += smoothing * (log_total - others / static_cast<double>(classes) - loss);
    }
    losses.data()[row] = static_cast<Real>(loss);
    statistics.data()[row * 2] = top;
    statistics.data()[row * 2 + 1] = 1 / total;
  });
  return losses;
}

void require_labels(const Index& labels, std::size_t classes, std::int64_t ignore_index, const char* op) {
  for (const std::int64_t label : labels) {
    require(label == ignore_index || (label >= 0 && static_cast<std::uint64_t>(label) < classes), op,
            "a label must be ignore_index, or at least 0 and below the number of classes", label, classes);
  }
}

void cross_entropy_backward(const Array& dy, const Array& logits, const Index& labels, const Array& statistics,
                            const ClassOptions& options, Array& dlogits) {
  const AxisView view(logits.shape(), options.axis);
  const std::size_t classes = view.extent;
  require_labels(labels, classes, options.ignore_index, "cross_entropy");  // they may have been written to since
  PoolVector<Real> copy(view.inner == 1 ? 0 : classes);
  for_each_counted(logits, labels, options, [&](std::size_t label, const Real* x, std::size_t row, std::size_t offset) {
    const Real g = dy.data()[dy.size() == 1 ? 0 : row] * options.scale;
    const Real top = statistics.data()[row * 2];
    const Real scale = g * statistics.data()[row * 2 + 1];
    const Real shift = g * options.smoothing / static_cast<Real>(classes);
    Real* to = dlogits.data() + offset;
    if (view.inner == 1) {
      simd::add_exp_of_difference(x, top, scale, -shift, to, classes);
    } else {
      std::fill(copy.begin(), copy.end(), Real(0));
      simd::add_exp_of_difference(x, top, scale, -shift, copy.data(), classes);
      for (std::size_t k = 0; k < classes; ++k) to[k * view.inner] += copy[k];
    }
    to[label * view.inner] -= g * (1 - options.smoothing);
  });
}

}  // namespace TAPEGRAD
