#include "optim/clip.hpp"

#include "optim/sgd.hpp"
#include "tests/check.hpp"

using namespace tapegrad;
using optim::clip_grad_norm;
using optim::clip_grad_value;

namespace {

Parameter with_gradient(const Tensor& gradient) {
  Parameter p(zeros(gradient.shape()));
  Tape tape;
  tape.backward(sum(p * gradient));
  p.mutable_grad() = gradient.value();  // NaN and infinities too
  return p;
}

}  // namespace

TEST_CASE("Clipping by norm shortens what is longer, all parameters together") {
  const Parameter p = with_gradient({3, 4});
  CHECK(clip_grad_norm({p}, 1) == 5);
  CHECK(p.grad().data()[0] == Approx(Real(0.6)));
  CHECK(p.grad().data()[1] == Approx(Real(0.8)));
  CHECK(clip_grad_norm({p}, 2) == Approx(1));
  CHECK(p.grad().data()[0] == Approx(Real(0.6)));

  const Parameter a = with_gradient({2, 0}), b = with_gradient({{1}, {2}});
  const Parameter none(Tensor{1});
  CHECK(clip_grad_norm({a, none, b, a}, 1.5) == 3);  // a is counted, and shortened, once
  CHECK(a.grad().data()[0] == 1);
  CHECK(b.grad().data()[1] == 1);
  CHECK(clip_grad_norm({none}, 1) == 0);
  CHECK(clip_grad_norm({}, 1) == 0);
}

TEST_CASE("Clipping by norm keeps zeros, and makes zeros of anything for a norm of 0") {
  const Parameter p = with_gradient({0, 0});
  CHECK(clip_grad_norm({p}, 1) == 0);
  CHECK(p.grad() == Array(Shape{2}, Real(0)));
  const Parameter q = with_gradient({3, 4});
  CHECK(clip_grad_norm({q}, 0) == 5);
  CHECK(q.grad() == Array(Shape{2}, Real(0)));
  check_refused([&] { clip_grad_norm({p}, -1); }, "[clip_grad_norm] max_norm must be at least 0; got -1");
  check_refused([&] { clip_grad_norm({p}, NAN); }, "max_norm");
}

TEST_CASE("Clipping by norm knows norms whose squares leave Real's range") {
  for (const double size :
       kDouble ? std::vector<double>{1e20, 1e200, 1e300, 1e-200} : std::vector<double>{1e20, 1e-30}) {
    CAPTURE(size);
    const Parameter p = with_gradient(Array(Shape{100}, static_cast<Real>(size)));
    CHECK(clip_grad_norm({p}, size) == Approx(10 * size).epsilon(1e-6));
    for (const Real g : p.grad().storage()) REQUIRE(g == Approx(size / 10).epsilon(1e-6));
  }
  const Parameter p = with_gradient(Array(Shape{100}, Real(1e20)));
  CHECK(clip_grad_norm({p}, 1) == Approx(1e21).epsilon(1e-6));
  for (const Real g : p.grad().storage()) REQUIRE(g == Approx(0.1).epsilon(1e-6));
}

TEST_CASE("Clipping by norm says when the norm is not finite, and leaves everything alone") {
  Parameter p = with_gradient({kInf, 1}), q = with_gradient({2, 2});
  optim::SGD sgd({p, q});
  CHECK(clip_grad_norm({p, q}, 1) == INFINITY);
  CHECK(p.grad().data()[0] == kInf);
  CHECK(p.grad().data()[1] == 1);
  CHECK(q.grad().data()[0] == 2);
  p.mutable_grad() = Tensor{1, kNaN}.value();
  const double norm = clip_grad_norm({p, q}, 1);
  CHECK(std::isnan(norm));
  CHECK(p.grad().data()[0] == 1);
  CHECK(q.grad().data()[1] == 2);
  if (std::isfinite(norm)) sgd.step();
  CHECK(q.value() == Array(Shape{2}, Real(0)));
}

TEST_CASE("Clipping by value moves what is outside to the limit") {
  const Parameter p = with_gradient({-3, -0.5, 0.25, 7, kInf, kNaN});
  clip_grad_value({p}, 0.5);
  check_close(p.grad(), Tensor{-0.5, -0.5, 0.25, 0.5, 0.5, kNaN}, 0);
  clip_grad_value({p}, INFINITY);
  CHECK(p.grad().data()[3] == Real(0.5));
  check_refused([&] { clip_grad_value({p}, -1); }, "[clip_grad_value] the limit must be at least 0; got -1");
  check_refused([&] { clip_grad_value({p}, NAN); }, "limit");
}
