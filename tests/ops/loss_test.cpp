#include "autograd/random.hpp"
#include "autograd/threads.hpp"
#include "tests/check.hpp"

using namespace tapegrad;

TEST_CASE("squared errors, with each reduction") {
  const Tensor p{{1, 2}, {3, 5}};
  const Tensor t{{0, 2}, {5, 1}};
  check_close(mse_loss(p, t, Reduction::none), Tensor{{1, 0}, {4, 16}});
  check_close(mse_loss(p, t, Reduction::sum), Tensor(21));
  check_close(mse_loss(p, t), Tensor(5.25));
  check_close(gradient_of([&](const Tensor& x) { return mse_loss(x, t); }, p), Tensor{{0.5, 0}, {-1, 2}});
  Rng rng(1);
  for (Reduction reduction : {Reduction::none, Reduction::mean, Reduction::sum}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{4, 3}}) {
      check_gradients([=](const auto& xs) { return mse_loss(xs[0], xs[1], reduction); },
                      {Tensor(rng.normal(shape)), Tensor(rng.normal(shape))});
    }
  }
}

TEST_CASE("a column against a row is refused, not made a matrix of losses") {
  check_refused(
      [] {
        mse_loss(Tensor{{1}, {2}, {3}}, Tensor{1, 2, 3});
      },
      "[mse_loss] prediction and target must have equal shapes; got (3,1) and (3)");
}

// ---- other losses of numbers ----------------------------------------------------------------------------------------

namespace {

const Reduction kReductions[] = {Reduction::none, Reduction::mean, Reduction::sum, Reduction::batch_mean};

/// Checks each reduction of a loss of two Tensors against its losses one by one, and its gradients.
template <class Loss>
void check_loss(Loss loss, const Tensor& a, const Tensor& b) {
  const Tensor each = loss(a, b, Reduction::none);
  check_close(loss(a, b, Reduction::sum), sum(each));
  check_close(loss(a, b, Reduction::mean), mean(each));
  check_close(loss(a, b, Reduction::batch_mean), sum(each) / static_cast<Real>(a.shape()[0]));
  for (Reduction reduction : kReductions) {
    check_gradients([=](const auto& xs) { return loss(xs[0], xs[1], reduction); }, {a, b});
  }
}

}  // namespace

TEST_CASE("absolute errors, and their smooth form") {
  const Tensor p{{1, 2, 0.5}, {-3, 5, 7}};
  const Tensor t{{1.5, 4, 0.25}, {-1, 4.5, 4}};
  check_close(l1_loss(p, t, Reduction::none), Tensor{{0.5, 2, 0.25}, {2, 0.5, 3}});
  check_close(smooth_l1_loss(p, t, Reduction::none), Tensor{{0.125, 1.5, 0.03125}, {1.5, 0.125, 2.5}});
  check_close(smooth_l1_loss(p, t, Reduction::none, 2.5), Tensor{{0.05, 0.8, 0.0125}, {0.8, 0.05, 1.75}});
  check_close(smooth_l1_loss(p, t, Reduction::mean, 0), l1_loss(p, t));
  check_loss([](const auto&... x) { return l1_loss(x...); }, p, t);
  check_loss([](const auto&... x) { return smooth_l1_loss(x...); }, p, t);
  const auto wide = [](const Tensor& a, const Tensor& b, Reduction r) { return smooth_l1_loss(a, b, r, Real(2.25)); };
  check_loss(wide, p, t);
  check_close(gradient_of(
                  [](const Tensor& x) {
                    return l1_loss(x, Tensor{1, 1, 1}, Reduction::sum);
                  },
                  Tensor{1, 2, 0}),
              Tensor{0, 1, -1});
  const auto smooth = [](const Tensor& x) { return smooth_l1_loss(x, Tensor{0, 0, 0, 0}, Reduction::sum); };
  check_close(gradient_of(smooth, Tensor{0.5, 1, -kInf, kInf}), Tensor{0.5, 1, -1, 1});
  check_close(smooth(Tensor{0, 0, kInf, 0}), Tensor(kInf));
  check_refused([&] { smooth_l1_loss(p, t, Reduction::mean, -1); },
                "[smooth_l1_loss] beta must not be negative; got -1");
}

TEST_CASE("binary cross entropy of logits neither overflows nor cancels") {
  const Tensor target{0, 1, 0.25, 1, 0, 0, 1};
  const Tensor x{0.5, -2, 3, 30, -30, 1e4, -1e4};
  Array expected = target.value();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const long double v = x.value()(i), t = target.value()(i);
    expected(i) = static_cast<Real>(t * (std::fmax(-v, 0) + std::log1p(std::exp(-std::fabs(v)))) +
                                    (1 - t) * (std::fmax(v, 0) + std::log1p(std::exp(-std::fabs(v)))));
  }
  const Array got = binary_cross_entropy_with_logits(x, target, Reduction::none).value();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got(i) / expected(i) - 1) < kTight);  // even 1e-13
  const auto loss = [&](const Tensor& v) { return binary_cross_entropy_with_logits(v, target, Reduction::sum); };
  check_close(gradient_of(loss, Tensor{0, 0, 0, 1e4, -1e4, 1e4, -1e4}), Tensor{0.5, -0.5, 0.25, 0, 0, 1, -1});
  Rng rng(6);
  check_loss([](const auto&... a) { return binary_cross_entropy_with_logits(a...); }, Tensor(rng.normal({3, 4}, 0, 2)),
             Tensor(rng.uniform({3, 4})));
}

TEST_CASE("the divergence of distributions takes 0 log 0 for 0") {
  const Tensor q = log(Tensor{{0.5, 0.25, 0.25}, {0.1, 0.2, 0.7}});
  const Tensor p{{0.25, 0.75, 0}, {1, 0, 0}};
  const Tensor each = kl_div(q, p, Reduction::none);
  check_close(each, Tensor{{0.25 * std::log(0.5), 0.75 * std::log(3.0), 0}, {std::log(10.0), 0, 0}});
  check_close(kl_div(q, p, Reduction::batch_mean), sum(each) / Real(2));
  check_close(kl_div(q, exp(q)), Tensor(0));
  const Tensor impossible{-kInf, 0};
  check_close(kl_div(impossible, Tensor{0, 1}, Reduction::none), Tensor{0, 0});
  const auto gradients = gradients_of(
      [](const std::vector<Tensor>& xs) { return kl_div(xs[0], xs[1], Reduction::sum); }, {impossible, Tensor{0, 1}});
  check_close(gradients[0], Tensor{0, -1});
  check_close(gradients[1], Tensor{0, 1});
  Rng rng(7);
  check_loss([](const auto&... a) { return kl_div(a...); }, Tensor(rng.normal({2, 3})),
             Tensor(rng.uniform({2, 3}, 0.1, 1)));
}

TEST_CASE("losses of shapes that differ, or without a batch for batch_mean, are refused") {
  const Tensor column{{1}, {2}};
  const Tensor row{1, 2};
  check_refused([&] { l1_loss(column, row); },
                "[l1_loss] prediction and target must have equal shapes; got (2,1) and (2)");
  check_refused([&] { smooth_l1_loss(column, row); }, "[smooth_l1_loss] prediction and target");
  check_refused([&] { binary_cross_entropy_with_logits(column, row); },
                "[binary_cross_entropy_with_logits] logits and");
  check_refused([&] { kl_div(column, row); }, "[kl_div] log_probabilities and target");
  check_refused([] { mse_loss(1, 2, Reduction::batch_mean); }, "[mse_loss] batch_mean needs a first axis; got ()");
}

// ---- losses of classes ----------------------------------------------------------------------------------------------

namespace {

/// The losses by the plain formula, in long double; classes along the last axis.
Array plain_cross_entropy(const Array& x, const Index& labels, long double smoothing, std::int64_t ignored = -100) {
  Array losses(labels.shape(), Real(0));
  const std::size_t n = x.shape().back();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels.data()[row] == ignored) continue;
    const Real* in = x.data() + row * n;
    const long double top = *std::max_element(in, in + n);
    long double total = 0, others = 0;
    for (std::size_t k = 0; k < n; ++k) total += std::exp(in[k] - top);
    for (std::size_t k = 0; k < n; ++k) others += (std::log(total) - (in[k] - top)) / static_cast<long double>(n);
    const long double own = std::log(total) - (in[labels.data()[row]] - top);
    losses.data()[row] = static_cast<Real>((1 - smoothing) * own + smoothing * others);
  }
  return losses;
}

Index random_labels(Rng& rng, const Shape& shape, std::size_t classes) {
  Index labels(shape);
  for (std::size_t i = 0; i < labels.size(); ++i) labels.data()[i] = static_cast<std::int64_t>(rng.below(classes));
  return labels;
}

}  // namespace

TEST_CASE("cross_entropy is the plain formula for any number of classes, with and without smoothing") {
  Rng rng(8);
  for (std::size_t classes = 1; classes <= 40; ++classes) {
    const Tensor x(rng.normal({2, 3, classes}, 0, 3));
    const Index labels = random_labels(rng, {2, 3}, classes);
    for (double smoothing : {0.0, 0.1, 1.0}) {
      CAPTURE(classes, smoothing);
      const Tensor each(plain_cross_entropy(x.value(), labels, smoothing));
      CrossEntropyOptions options{.reduction = Reduction::none, .label_smoothing = smoothing};
      check_close(cross_entropy(x, labels, options), each);
      for (Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::batch_mean}) {
        options.reduction = reduction;
        const Real count = reduction == Reduction::mean ? 6 : reduction == Reduction::sum ? 1 : 2;
        check_close(cross_entropy(x, labels, options), sum(each) / count);
      }
    }
    check_close(nll_loss(log_softmax(x, -1), labels), cross_entropy(x, labels), 2 * kTight);
  }
}

TEST_CASE("cross_entropy of huge logits keeps small losses and their gradients") {
  const Tensor x{{1e4, 1e4 - 1, 0}, {-1e4, -1e4, -1e4}, {0, 1e4, -1e4}};
  const Index labels{0, 2, 2};
  const CrossEntropyOptions each{.reduction = Reduction::none};
  check_close(cross_entropy(x, labels, each), Tensor{std::log1p(std::exp(-1.0)), std::log(3.0), 2e4});
  const double p = 1 / (1 + std::exp(-1.0));
  check_close(gradient_of([&](const Tensor& v) { return cross_entropy(v, labels, each); }, x),
              Tensor{{p - 1, 1 - p, 0}, {1.0 / 3, 1.0 / 3, -2.0 / 3}, {0, 1, -1}});
  // A class that is ruled out does no harm, unless it is the label.
  check_close(cross_entropy(Tensor{{0, -kInf}, {0, -kInf}}, {0, 1}, each), Tensor{0, kInf});
  CHECK(std::isnan(cross_entropy(Tensor{{kNaN, 0}}, {1}).item()));
}

TEST_CASE("the classes may lie along any axis") {
  Rng rng(9);
  const Tensor last(rng.normal({2, 3, 4, 5}));
  const Index labels = random_labels(rng, {2, 3, 4}, 5);
  const CrossEntropyOptions second{.reduction = Reduction::none, .label_smoothing = 0.2, .class_axis = 1};
  const CrossEntropyOptions plain{.reduction = Reduction::none, .label_smoothing = 0.2};
  const Tensor moved = permute(last, {0, 3, 1, 2});
  const Tensor dy(rng.normal({2, 3, 4}));
  check_close(cross_entropy(moved, labels, second), cross_entropy(last, labels, plain));
  check_close(
      gradient_of([&](const Tensor& x) { return cross_entropy(x, labels, second); }, moved, dy),
      permute(gradient_of([&](const Tensor& x) { return cross_entropy(x, labels, plain); }, last, dy), {0, 3, 1, 2}));
  check_close(nll_loss(moved, labels, Reduction::none, -100, 1), nll_loss(last, labels, Reduction::none));
  check_close(cross_entropy(Tensor{1, 2}, Index(Shape{}, std::vector<int>{0})), Tensor(std::log1p(std::exp(1.0))));
}

// Where all labels are padding, the gradients must be 0, not NaN (PyTorch issues 70348 and 116349).
TEST_CASE("labels that do not count give no loss and no gradient, even when there are no others") {
  const Tensor x{{1, 2}, {3, 4}};
  for (Reduction reduction : kReductions) {
    const CrossEntropyOptions options{.reduction = reduction, .ignore_index = -1, .label_smoothing = 0.1};
    const auto ignored = [&](const Tensor& v) { return cross_entropy(v, {-1, -1}, options); };
    const auto ignored_nll = [&](const Tensor& v) { return nll_loss(v, {-1, -1}, reduction, -1); };
    const Tensor nothing = reduction == Reduction::none ? Tensor{0, 0} : Tensor(0);
    for (const Tensor& logits : {x, Tensor{{kNaN, 0}, {kInf, 1}}}) {
      check_close(ignored(logits), nothing);
      check_close(gradient_of(ignored, logits), zeros({2, 2}));
      check_close(ignored_nll(logits), nothing);
      check_close(gradient_of(ignored_nll, logits), zeros({2, 2}));
    }
  }
  const auto one = [](const Tensor& v) { return cross_entropy(v, {1, 7}, {.ignore_index = 7}); };
  check_close(one(x), Tensor(std::log1p(std::exp(-1.0))));
  const double p = 1 / (1 + std::exp(1.0));
  check_close(gradient_of(one, x), Tensor{{p, -p}, {0, 0}});
  check_close(cross_entropy(zeros({0, 3}), Index(Shape{0})), Tensor(0));
  check_close(gradient_of([](const Tensor& v) { return cross_entropy(v, Index(Shape{0})); }, zeros({0, 3})),
              zeros({0, 3}));
  // ignore_index may be one of the classes.
  check_close(cross_entropy(x, {0, 1}, {.ignore_index = 0}), cross_entropy(Tensor{{3, 4}}, {1}));
}

TEST_CASE("the second derivative of an ignored row is 0 too") {
  Tensor x = Tensor{{1, 2}, {kNaN, kInf}}.set_requires_grad();
  Tape tape;
  const Tensor loss = cross_entropy(x, {1, -100});
  const Tensor first = tape.gradient(loss, {x}, {.create_graph = true})[0];
  const double p = 1 / (1 + std::exp(1.0));
  check_close(first, Tensor{{p, -p}, {0, 0}});
  check_close(tape.gradient(sum(first * Tensor{{1, 0}, {1, 1}}), {x})[0], Tensor{{p * (1 - p), p * (p - 1)}, {0, 0}});
}

TEST_CASE("losses of classes differentiate twice") {
  Rng rng(10);
  for (Reduction reduction : kReductions) {
    for (double smoothing : {0.0, 0.3}) {
      for (int axis : {1, 2}) {
        Index labels = random_labels(rng, axis == 1 ? Shape{2, 4} : Shape{2, 3}, 3);
        labels.data()[1] = -100;
        const CrossEntropyOptions options{.reduction = reduction, .label_smoothing = smoothing, .class_axis = axis};
        const Tensor x(rng.normal({2, 3, 4}));
        check_gradients([=](const auto& xs) { return cross_entropy(xs[0], labels, options); }, {x});
        check_gradients([=](const auto& xs) { return square(nll_loss(xs[0], labels, reduction, -100, axis)); }, {x});
      }
    }
  }
  check_gradients([](const auto& xs) { return cross_entropy(xs[0], {18, 3}); }, {Tensor(rng.normal({2, 19}))});
}

TEST_CASE("labels that name no class are refused, and so are shapes that don't fit") {
  const Tensor x = zeros({2, 3});
  check_refused(
      [&] {
        cross_entropy(x, {0, 3});
      },
      "[cross_entropy] a label must be ignore_index, or at least 0 and below the number of classes; got 3 and 3");
  check_refused([&] { cross_entropy(x, {-1, 0}); }, "[cross_entropy] a label");
  check_refused([&] { nll_loss(x, {-1, 0}); }, "[nll_loss] a label");
  check_refused([&] { cross_entropy(x, {0}); }, "[cross_entropy] labels must have the scores' shape without");
  check_refused([&] { cross_entropy(x, Index(Shape{2, 1})); }, "got (2,1) and (2,3)");
  check_refused(
      [&] {
        cross_entropy(zeros({2, 0}), {-100, -100});
      },
      "[cross_entropy] there must be a class; got (2,0)");
  check_refused(
      [&] {
        cross_entropy(x, {0, 0}, {.label_smoothing = 1.5});
      },
      "[cross_entropy] label_smoothing must be from 0 to 1; got 1.5");
  check_refused([&] { cross_entropy(x, {0, 0}, {.class_axis = 2}); }, "[cross_entropy] ");
  check_refused([&] { cross_entropy(Tensor(1), Index(Shape{})); }, "[cross_entropy] ");
}

TEST_CASE("cross_entropy gives the same bits with any number of threads") {
  Rng rng(11);
  const Tensor x(rng.normal({300, 500}));
  Index labels = random_labels(rng, {300}, 500);
  labels.data()[7] = -100;
  const auto loss = [&](const Tensor& v) { return cross_entropy(v, labels, {.label_smoothing = 0.1}); };
  const int before = threads();
  set_threads(1);
  const Tensor value = loss(x);
  const Tensor gradient = gradient_of(loss, x);
  for (int count : {2, 3}) {
    set_threads(count);
    CHECK(loss(x).value() == value.value());
    CHECK(gradient_of(loss, x).value() == gradient.value());
  }
  set_threads(before);
  check_close(value, mean(Tensor(plain_cross_entropy(x.value(), labels, 0.1))) * Real(300.0 / 299), 1e-5);
}

TEST_CASE("labels that were written to after the call are refused before any gradient is written") {
  for (bool again : {false, true}) {
    Index labels{0, 2};
    std::int64_t* const elements = labels.data();
    Parameter x(zeros({2, 3}));
    Tape tape;
    const Tensor loss = cross_entropy(x, labels, {.label_smoothing = 0.1});
    elements[1] = std::int64_t{1} << 40;
    check_refused([&] { tape.gradient(loss, {x}, {{}, again, again}); }, "[cross_entropy] a label");
  }
}
