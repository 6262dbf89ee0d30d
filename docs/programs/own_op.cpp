// An op of your own, in your own program: first composed of ops that are there, then recorded as one, then checked.
#include <iostream>

#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::expect, examples::show;

// [composed]
/// x sigmoid(beta x) (Ramachandran et al., 2017), of ops that are there.
Tensor swish_composed(const Tensor& x, const Tensor& beta) { return x * sigmoid(beta * x); }
// [/composed]

// [recorded]
/// The same as one op. x has any shape, beta is a scalar.
Tensor swish(const Tensor& x, const Tensor& beta) {
  require(beta.rank() == 0, "swish", "beta must be a scalar", beta.shape());
  const Real b = beta.item();
  return record(
      "swish", Tensor(x.value() / (Real(1) + xt::exp(x.value() * -b))),
      []<class T>(Unread, const T& dy, const T& x, const T& beta, Sink<T> dx, Sink<T> dbeta) {
        const T s = Real(1) / (Real(1) + exp(x * beta * Real(-1)));
        const T slope = dy * s * (Real(1) - s);
        dx += dy * s + slope * x * beta;
        dbeta += slope * x * x;
      },
      x, beta);
}
// [/recorded]

int main() {
  // [same]
  Rng rng(0);
  const Tensor values = rng.normal({2, 3});
  const Parameter x(values.detach()), beta(Tensor(0.7));
  const auto record_it = [&](const char* name, const auto& f) {
    Tape tape;
    const Tensor y = sum(f(x, beta));
    show(name);
    tape.print(std::cout);
    std::cout << "dbeta = " << tape.gradient(y, {beta})[0] << "\n\n";
  };
  record_it("composed", swish_composed);
  record_it("recorded", swish);
  // [/same]

  // [prove]
  const auto f = [](const std::vector<Tensor>& xs) { return swish(xs[0], xs[1]); };
  const GradCheckReport first = grad_check(f, {values, Tensor(0.7)});
  const GradCheckReport second = grad_grad_check(f, {values, Tensor(0.7)});
  show(first.message + "\n" + second.message);
  // [/prove]
  expect(first && second, "the rule is right in both orders");
  expect(examples::largest_difference(swish(x, beta), swish_composed(x, beta)) < 1e-14, "the values are the same");

  // [refuse]
  try {
    swish(values, Tensor{1, 2});
  } catch (const Error& error) {
    show(std::string("\n") + error.what());
  }
  // [/refuse]
}
