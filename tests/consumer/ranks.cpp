// Training on several ranks, on one.
#include <tapegrad/distributed/data_parallel.hpp>
#include <tapegrad/tapegrad.hpp>

using namespace tapegrad;

int main() {
  Ranks ranks;
  Rng rng(0);
  nn::Linear net(2, 1, rng);
  distributed::broadcast(ranks, net);
  distributed::GradientSum gradients(ranks, net);
  Tape tape;
  tape.backward(sum(net(ones({3, 2}))));
  return gradients.finish(0.5) == 0.5 && net.bias.grad()(0) == 3 && ranks.share(3).size() == 3 ? 0 : 1;
}
