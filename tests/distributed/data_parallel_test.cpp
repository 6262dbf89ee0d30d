#include "distributed/data_parallel.hpp"

#include "nn/dropout.hpp"
#include "nn/linear.hpp"
#include "optim/adam.hpp"
#include "optim/clip.hpp"
#include "tests/check.hpp"
#include "tests/distributed/ranks.hpp"

using namespace tapegrad;

namespace {

/// Two layers, one used twice, and a parameter that no loss needs.
struct Net : nn::Module {
  explicit Net(Rng& rng)
      : in(child<nn::Linear>("in", 3, 5, rng)),
        middle(child<nn::Linear>("middle", 5, 5, rng)),
        unused(param("unused", ones({4}))),
        out(child<nn::Linear>("out", 5, 1, rng)) {}
  Tensor operator()(const Tensor& x) { return out(tanh(middle(tanh(middle(tanh(in(x))))))); }
  nn::Linear in, middle;
  Parameter unused;
  nn::Linear out;
};

/// Rows from `begin` on, before `end`, of a batch that depends on the step only.
struct Data {
  Tensor x, y;
  Data(std::uint64_t step, Share rows, std::size_t batch) {
    Rng rng(step);
    const Array all_x = rng.normal({batch, 3}), all_y = rng.normal({batch, 1});
    const auto part = [&](const Array& all, std::size_t width) {
      Array some = empty_array({rows.size(), width});
      std::copy_n(all.data() + rows.begin * width, some.size(), some.data());
      return Tensor(std::move(some));
    };
    x = part(all_x, 3);
    y = part(all_y, 1);
  }
};

struct Trained {
  std::vector<double> losses, norms;
  std::vector<Tensor> parameters;
  bool unused_has_grad = false;
};

/// Twenty steps; the last batch of every four is smaller.
template <class Reduce>
Trained train(Net& net, const auto& share, const Reduce& reduce) {
  Trained trained;
  optim::AdamW optimizer(net.parameters(), {.learning_rate = 0.01, .weight_decay = 0.1});
  for (std::uint64_t step = 0; step < 20; ++step) {
    const std::size_t batch = step % 4 == 3 ? 3 : 8;
    const Share mine = share(batch);
    double loss = 0;
    if (mine.size() > 0) {
      const Data data(step, mine, batch);
      Tape tape;
      const Tensor part = sum(square(net(data.x) - data.y)) / Tensor(Real(batch));
      tape.backward(part);
      loss = part.item();
    }
    trained.losses.push_back(reduce(loss));
    trained.unused_has_grad |= net.unused.has_grad();
    trained.norms.push_back(optim::clip_grad_norm(optimizer.parameters(), 1));
    optimizer.step();
    optimizer.zero_grad();
  }
  for (const Parameter& parameter : net.parameters()) trained.parameters.push_back(parameter.detach());
  return trained;
}

}  // namespace

TEST_CASE("ranks train as one process does, whatever the buckets", "[distributed]") {
  const std::size_t bucket_bytes = GENERATE(1, 100, 1 << 20);
  Rng rng(3), same(3);
  Net net(rng), alone(same);
  const Trained expected = train(
      alone,
      [](std::size_t batch) {
        return Share{0, batch};
      },
      [](double loss) { return loss; });
  distributed::GradientSum gradients(the_ranks(), net, bucket_bytes);
  const Trained got = train(
      net, [](std::size_t batch) { return the_ranks().share(batch); },
      [&](double loss) { return gradients.finish(loss); });
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    CHECK(got.losses[i] == Approx(expected.losses[i]).epsilon(kDouble ? 1e-11 : 1e-4));
    CHECK(got.norms[i] == Approx(expected.norms[i]).epsilon(kDouble ? 1e-11 : 1e-3));
  }
  for (std::size_t i = 0; i < expected.parameters.size(); ++i) {
    check_close(got.parameters[i], expected.parameters[i], kDouble ? 1e-11 : 1e-4);
  }
  CHECK(!got.unused_has_grad);
  CHECK_NOTHROW(distributed::require_same(the_ranks(), net, true));
}

TEST_CASE("a gradient that only one rank has is everybody's", "[distributed]") {
  Parameter* of_net = nullptr;
  struct One : nn::Module {
    Parameter p = param("p", Tensor{1, 2});
  } net;
  of_net = &net.p;
  distributed::GradientSum gradients(the_ranks(), net);
  if (the_ranks().rank() == the_ranks().size() - 1) {
    Tape tape;
    tape.backward(sum(square(*of_net)));
  }
  CHECK(gradients.finish(the_ranks().first() ? 1.5 : 0) == 1.5);
  check_close(net.p.grad(), Tensor{2, 4});
}

TEST_CASE("a loss that is not finite stops all ranks and names the one", "[distributed]") {
  Rng rng(0);
  Net net(rng);
  distributed::GradientSum gradients(the_ranks(), net);
  const int bad = the_ranks().size() - 1;
  const Tensor x = ones({1, 3});
  for (int pass = 0; pass < 2; ++pass) {  // afterwards it works as before
    {
      Tape tape;
      tape.backward(sum(net(x)));
    }
    const Tensor own = Tensor(net.out.weight.grad());
    std::string message;
    try {
      (void)gradients.finish(the_ranks().rank() == bad ? kNaN : 1);
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK(message == (bad == 0 ? "the loss is nan" : "the loss on rank " + std::to_string(bad) + " is nan"));
    check_close(net.out.weight.grad(), own, 0);
    net.zero_grad();
  }
  {
    Tape tape;
    tape.backward(sum(net(x)));
  }
  const Tensor own = Tensor(net.out.weight.grad());
  CHECK(gradients.finish(1) == the_ranks().size());
  check_close(net.out.weight.grad(), own * Real(the_ranks().size()));
}

TEST_CASE("parameters that differ are refused, the first of them named", "[distributed]") {
  if (the_ranks().size() == 1) return;
  Rng rng(0);
  Net net(rng);
  const int last = the_ranks().size() - 1;
  const std::string on_last = " on rank " + std::to_string(last);
  if (the_ranks().rank() == last) net.middle.weight.mutable_value()(1, 2) += Real(0.01);
  if (the_ranks().rank() == last) net.out.weight.mutable_value()(0, 0) += 1;
  check_refused([&] { distributed::GradientSum(the_ranks(), net); },
                "[distributed] parameters must be the same on all ranks; got another \"middle.weight\"" + on_last);

  distributed::broadcast(the_ranks(), net);
  CHECK_NOTHROW(distributed::GradientSum(the_ranks(), net));
  Rng again(0);
  check_close(net.middle.weight, Net(again).middle.weight, 0);

  // Other names, shapes or numbers of them can't be broadcast.
  struct Other : nn::Module {
    Other(std::size_t width, int more) {
      param("weight", ones({width}));
      for (int i = 0; i < more; ++i) param("p" + std::to_string(i), Tensor(0));
    }
  };
  const bool other = the_ranks().rank() == last;
  Other wider(other ? 4 : 3, 0), more(3, other ? 1 : 0), fewer(3, other ? 0 : 1);
  check_refused([&] { distributed::broadcast(the_ranks(), wider); }, "got another \"weight\"" + on_last);
  check_refused([&] { distributed::broadcast(the_ranks(), more); }, on_last);
  check_refused([&] { distributed::broadcast(the_ranks(), fewer); }, on_last);
}

TEST_CASE("the first rank's state goes to all, bit for bit", "[distributed]") {
  Rng rng(7);
  State state;
  if (the_ranks().first()) {
    state.arrays.emplace_back("a", rng.normal({2, 3}));
    state.arrays.emplace_back("empty", Array(Shape{0, 2}));
    state.set_number("x", 0.1);
  }
  const State all = distributed::broadcast(the_ranks(), state);
  REQUIRE(all.arrays.size() == 2);
  CHECK(all.arrays[1].second.shape() == Shape{0, 2});
  CHECK(all.number("x") == 0.1);
  Rng same(7);
  check_close(*all.find("a"), same.normal({2, 3}), 0);
}

TEST_CASE("each rank drops other elements, and the common generator stays common", "[distributed]") {
  Rng rng(5);
  double own = 0;
  {
    const distributed::OwnNumbers numbers(the_ranks(), rng);
    for (int i = 0; i <= the_ranks().rank(); ++i) own = rng.uniform();  // not all draw as many
  }
  std::vector<double> drawn = the_ranks().gather(own), common = the_ranks().gather(rng.uniform());
  std::sort(drawn.begin(), drawn.end());
  CHECK(std::unique(drawn.begin(), drawn.end()) == drawn.end());
  CHECK(std::count(common.begin(), common.end(), common[0]) == the_ranks().size());
}

TEST_CASE("a second gradient before the first is finished is refused", "[distributed]") {
  if (the_ranks().size() == 1) return;
  Rng rng(0);
  Net net(rng);
  distributed::GradientSum gradients(the_ranks(), net);
  const auto pass = [&] {
    Tape tape;
    tape.backward(sum(net(ones({1, 3}))));
  };
  pass();
  check_refused(pass, "a parameter must get one gradient in a step, after zero_grad(), before finish()");
  CHECK(gradients.finish(0) == 0);
  check_refused(pass, "got \"out.");  // zero_grad() was forgotten
  net.zero_grad();
  CHECK(gradients.finish(0) == 0);
}
