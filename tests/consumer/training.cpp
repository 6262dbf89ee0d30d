// A user's program: an op of its own, a module, a few steps of training, a checkpoint. Exits with 0 when all came
// right.
#include <cmath>
#include <cstdio>
#include <tapegrad/tapegrad.hpp>

using namespace tapegrad;

static_assert(TAPEGRAD_VERSION_NUMBER >= 100 && TAPEGRAD_VERSION_MAJOR == 0);

namespace {

/// x sigmoid(x), as an op.
Tensor swish(const Tensor& x) {
  return record(
      "swish", x.value() / (Real(1) + xt::exp(-x.value())),
      []<class T>(Unread, const T& dy, const T& x, Sink<T> dx) {
        const T s = Real(1) / (Real(1) + exp(-x));
        dx += dy * (s + x * s * (Real(1) - s));
      },
      x);
}

struct Mlp : nn::Module {
  explicit Mlp(Rng& rng) : hidden(child<nn::Linear>("hidden", 3, 16, rng)), out(child<nn::Linear>("out", 16, 1, rng)) {}
  Tensor operator()(const Tensor& x) { return out(swish(hidden(x))); }
  nn::Linear hidden, out;
};

bool came_right = true;
void check(bool ok, const char* what) {
  if (!ok) std::printf("wrong: %s\n", what);
  came_right = came_right && ok;
}

}  // namespace

int main() {
  Rng rng(1);
  Mlp net(rng);
  optim::Adam optimizer(net.parameters(), {.learning_rate = 0.01});
  const Tensor x = rng.normal({64, 3});
  const Tensor y = sum(sin(x), 1, true);
  CheckFinite finite;
  Real first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    optimizer.zero_grad();
    Tape tape;
    const Tensor loss = mse_loss(net(x), y);
    tape.backward(loss);
    optimizer.step();
    (step == 0 ? first : last) = loss.item();
  }
  check(last < first / 20, "the loss falls");

  // The same arrays in both halves, however each was compiled: sizes that fill no vector register, axes that broadcast.
  static_assert(alignof(Array) <= alignof(std::max_align_t));
  for (std::size_t n : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100}) {
    Array a = xt::arange<Real>(0, static_cast<Real>(n));  // built here
    Parameter p(Tensor(Array(a * Real(0.5))));
    Tape tape;
    const Tensor outer = unsqueeze(p, 1) * unsqueeze(Tensor(a), 0);  // built in the library
    tape.backward(sum(softmax(outer, 1) * outer) + sum(exp(-p)));
    const Array here = xt::exp(-p.value());
    const Array there = exp(-Tensor(Array(p.value()))).value();
    check(here.shape() == there.shape(), "shapes agree");
    for (std::size_t i = 0; i < n; ++i) check(std::abs(here(i) - there(i)) < 1e-6, "values agree");
    check(std::isfinite(p.grad()(n - 1)), "gradients are finite");
  }

  try {
    bmm(ones({2, 3, 4}), ones({2, 5, 6}));
    check(false, "a wrong shape is refused");
  } catch (const Error&) {  // thrown in the library, caught here
  }
  std::printf("tapegrad %s: loss %.4f, then %.4f\n", TAPEGRAD_VERSION, double(first), double(last));
  return came_right ? 0 : 1;
}
