// Gradients of gradients: Newton's method on a bent valley, and a net whose slope is held at 1.
#include <cmath>

#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::expect, examples::show, examples::text, examples::to_numbers;

namespace {

// [valley]
/// Rosenbrock's valley: 0 at (1,1), behind a bend that steepest descent creeps along.
Tensor valley(const Tensor& p) {
  const Tensor x = slice(p, 0, 0, 1), y = slice(p, 0, 1, 2);
  return sum(square(Real(1) - x) + Real(100) * square(y - square(x)));
}
// [/valley]

// [newton]
/// One step of Newton's method: p - H^-1 g, H the second derivatives, a row for each element of the gradient g.
Tensor newton_step(const Tensor& p) {
  const Parameter x(p.detach());
  Tape tape;
  const Tensor g = tape.gradient(valley(x), {x}, {.create_graph = true})[0];
  Array h[2];
  for (std::ptrdiff_t i = 0; i < 2; ++i) {
    h[i] = tape.gradient(sum(slice(g, 0, i, i + 1)), {x}, {.keep = true})[0].value();
  }
  const Real a = h[0](0), b = h[0](1), d = h[1](1), det = a * d - b * b;
  const Array& v = g.value();
  return x.value() - Array{(d * v(0) - b * v(1)) / det, (a * v(1) - b * v(0)) / det};
}
// [/newton]

// [descent]
Tensor descent_step(const Tensor& p, double rate) {
  const Parameter x(p.detach());
  Tape tape;
  return x.value() - static_cast<Real>(rate) * tape.gradient(valley(x), {x})[0].value();
}
// [/descent]

void show_newton() {
  examples::Panel panel{"", "steps", "value of the valley", {}, {}, false, true};
  const auto walk = [&](const char* name, int steps, const auto& step) {
    examples::Series series{name, {}, {}, examples::Mark::line_points};
    Tensor p{-1.2, 1};
    for (int i = 0; i <= steps; ++i, p = step(p)) {
      series.x.push_back(i);
      series.y.push_back(std::max<double>(valley(p).item(), 1e-32));
      if (i < 7)
        show(text("  %-8s step %d: (%9.6f, %9.6f)  value %.3g", name, i, p.value()(0), p.value()(1), series.y.back()));
    }
    panel.series.push_back(series);
    return series.y.back();
  };
  show("From (-1.2, 1), to where the valley is 0:");
  const double newton = walk("Newton", 7, newton_step);
  const double descent = walk("descent", 30, [](const Tensor& p) { return descent_step(p, 0.001); });
  expect(newton < 1e-20 && descent > 1, "Newton's method is there when descent has hardly begun");
  examples::save(examples::Figure{"Down a bent valley", {panel}}, "newton");
}

// [net]
struct Critic : nn::Module {
  explicit Critic(Rng& rng)
      : hidden(child<nn::Linear>("hidden", 1, 32, rng)), out(child<nn::Linear>("out", 32, 1, rng)) {}
  Tensor operator()(const Tensor& x) const { return out(tanh(hidden(x))); }
  nn::Linear hidden, out;
};
// [/net]

// [penalty]
/// Trains the critic to be larger on a than on b, by as much as a slope of about 1 allows. Returns the largest slope.
double train(Critic& critic, bool penalised, Rng& rng) {
  optim::Adam optimizer(critic.parameters(), {.learning_rate = 0.01});
  for (int step = 0; step < 500; ++step) {
    const Tensor a = rng.normal({64, 1}, 2, 0.5), b = rng.normal({64, 1}, -2, 0.5);
    const Tensor t = rng.uniform({64, 1});
    const Parameter between(a * t + b * (Real(1) - t));
    optimizer.zero_grad();
    Tape tape;
    Tensor loss = mean(critic(b)) - mean(critic(a));
    if (penalised) {
      const Tensor slope = tape.gradient(sum(critic(between)), {between}, {.create_graph = true})[0];
      loss += Real(10) * mean(square(norm(slope, {1}) - Real(1)));
    }
    tape.backward(loss);
    optimizer.step();
  }
  const Parameter x(reshape(arange(-3, 3, Real(0.05)), {-1, 1}));
  Tape tape;
  return amax(abs(tape.gradient(sum(critic(x)), {x})[0])).item();
}
// [/penalty]

void show_penalty() {
  examples::Panel panel{"", "x", "critic(x) - critic(0)", {}, {}};
  const Tensor x = reshape(arange(-3, 3, Real(0.05)), {-1, 1});
  show("\nTwo clouds about -2 and 2, and a critic that tells them apart:");
  for (const bool penalised : {false, true}) {
    Rng rng(0);
    Critic critic(rng);
    const double steepest = train(critic, penalised, rng);
    const char* name = penalised ? "with a gradient penalty" : "without";
    show(text("  %-24s steepest slope %.3f", name, steepest));
    expect(penalised == (steepest < 1.5), "the penalty holds the slope near 1, and nothing else does");
    panel.series.push_back({name, to_numbers(x), to_numbers(critic(x) - critic(Tensor{{0}})), examples::Mark::line});
  }
  examples::save(examples::Figure{"A critic with its slope held, and one without", {panel}}, "gradient_penalty");
}

}  // namespace

int main() {
  show_newton();
  show_penalty();
}
