#include "nn/loss.hpp"

#include "tests/catch.hpp"

using namespace tapegrad;

TEST_CASE("MSELoss reduces as asked, and refuses shapes that differ") {
  const Tensor prediction{1, 2, 4};
  const Tensor target{1, 1, 1};
  CHECK(nn::MSELoss{Reduction::none}(prediction, target).value() == Tensor{0, 1, 9}.value());
  CHECK(nn::MSELoss{Reduction::sum}(prediction, target).item() == 10);
  CHECK(nn::MSELoss{}(prediction, target).item() == Approx(10.0 / 3));
  CHECK_THROWS_WITH(nn::MSELoss{}(Tensor{{1}, {2}, {3}}, Tensor{1, 2, 3}),
                    "[mse_loss] prediction and target must have equal shapes; got (3,1) and (3)");

  Parameter p(prediction);
  Tape tape;
  tape.backward(nn::MSELoss{Reduction::sum}(p, target));
  CHECK(p.grad() == Tensor{0, 2, 6}.value());
}
