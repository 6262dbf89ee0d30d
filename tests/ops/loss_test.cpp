#include "autograd/random.hpp"
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
