// Training on several ranks: five lines more than on one. `mpirun -n 4 data_parallel` prints the losses that
// `data_parallel` prints.
#include "distributed/data_parallel.hpp"

#include "examples/support/show.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::expect, examples::show, examples::text;

namespace {

// [net]
struct Net : nn::Module {
  explicit Net(Rng& rng) : hidden(child<nn::Linear>("hidden", 2, 64, rng)), out(child<nn::Linear>("out", 64, 1, rng)) {}
  Tensor operator()(const Tensor& x) { return out(tanh(hidden(x))); }
  nn::Linear hidden, out;
};
// [/net]

// [train]
constexpr std::size_t kBatch = 30;

void train(Ranks& ranks) {
  Rng rng(0);
  Net net(rng);
  distributed::broadcast(ranks, net);              // two
  distributed::GradientSum gradients(ranks, net);  // three
  optim::AdamW optimizer(net.parameters(), {.learning_rate = 0.01});
  const Share mine = ranks.share(kBatch);  // four
  if (ranks.first()) show(text("ranks: %d, rows of the first: %zu of %zu", ranks.size(), mine.size(), kBatch));
  double loss = 0;
  for (int step = 1; step <= 200; ++step) {
    const Tensor batch = rng.uniform({kBatch, 2}, -1, 1);  // the same on all ranks
    const Tensor x = slice(batch, 0, std::ptrdiff_t(mine.begin), std::ptrdiff_t(mine.end));
    const Tensor y = sin(sum(x * Real(3), {1}, true));
    Tape tape;
    const Tensor part = sum(square(net(x) - y)) / Real(kBatch);
    tape.backward(part);
    loss = gradients.finish(part.item());  // five
    optimizer.step();
    optimizer.zero_grad();
    if (ranks.first() && step % 40 == 0) show(text("step %3d  loss %.14f", step, loss));
  }
  expect(loss < 0.1, "the network has learnt the function");
}
// [/train]

}  // namespace

// [main]
int main() {
  Ranks ranks;  // one
  try {
    train(ranks);
  } catch (const std::exception& error) {
    ranks.fail(error.what());  // otherwise the others would wait for this one
  }
}
// [/main]
