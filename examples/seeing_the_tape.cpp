// What a tape holds, seen four ways: every step of a small regression with its value and gradient; a Transformer's
// hundreds of steps, folded by the modules that made them; the step where numbers stop being finite; and where the time
// of a training step goes.
#include <cmath>

#include "examples/support/program.hpp"
#include "examples/support/show.hpp"
#include "examples/support/tool.hpp"
#include "tapegrad.hpp"

using namespace tapegrad;
using examples::expect, examples::show;

namespace {

/// Writes the graph as a picture where Graphviz is installed, and as its text.
void draw_graph(const std::string& dot, const std::string& path) {
  examples::write_file(path + ".dot", dot);
  show("  " + path + ".dot");
  const std::string graphviz = examples::find_tool("dot", "GRAPHVIZ_DOT");
  if (graphviz.empty()) {
    show("  no picture of it: Graphviz is not installed");
    return;
  }
  examples::write_file(path + ".svg", examples::output_of(graphviz, {"-Tsvg"}, dot));
  show("  " + path + ".svg");
}

// [regression]
/// One training step of Nadaraya-Watson regression: two queries, each with three keys.
void show_regression(const std::string& out) {
  Rng rng(0);
  nn::NadarayaWatson model(3, rng);
  const Tensor queries{1, 2}, keys{{0, 1, 3}, {1, 2, 4}}, values{{0, 1, 9}, {1, 4, 16}}, targets{1, 4};
  TapeView view;
  {
    Tape tape;
    tape.backward(mse_loss(model(queries, keys, values), targets));
  }
  show("a step of kernel regression, after its backward pass");
  view.print(std::cout);
  draw_graph(view.to_dot(), out + "/tape_regression");
  const StepView& last = view.steps().back();
  expect(last.gradient.item() == 1, "the loss has the gradient 1");
}
// [/regression]

// [transformer]
/// The same tape three times, folded less and less.
void show_transformer(const std::string& out) {
  Rng rng(0);
  const nn::TransformerConfig config{
      .width = 8, .heads = 2, .hidden = 16, .encoder_layers = 2, .decoder_layers = 2, .dropout = 0};
  nn::Transformer net(config, rng);
  Tape tape;
  const Tensor loss = mean(square(net(rng.normal({1, 5, 8}), rng.normal({1, 3, 8}))));
  show("\na Transformer's tape, folded to its outermost modules");
  tape.print(std::cout, {.depth = 0});
  show("\nto their parts");
  tape.print(std::cout, {.depth = 1});
  show("\nto what a layer is made of, as a graph");
  draw_graph(tape.to_dot({.depth = 2}), out + "/tape_transformer");
}
// [/transformer]

// [finite]
/// The variance of equal numbers is 0, and the square root has no slope there.
void show_check_finite() {
  const Parameter x(Tensor{{1, 2}, {3, 3}});
  CheckFinite check;
  Tape tape;
  std::string message;
  try {
    NamedScope name("spread");
    const Tensor centred = x - mean(x, 1, true);
    tape.backward(sum(sqrt(mean(square(centred), 1))));
  } catch (const Error& error) {
    message = error.what();
  }
  show("\nthe step where numbers stop being finite");
  show("  " + message);
  expect(message.find("'sqrt' in spread makes the gradient of x0 inf") != std::string::npos, "sqrt is found");
  expect(!x.has_grad(), "no gradient was touched");
}
// [/finite]

// [profile]
/// Where the time of a language model's training goes. The training loop knows nothing of it.
void show_profile(bool quick) {
  Rng rng(0);
  nn::LanguageModel net({.vocabulary = 64, .context = 32, .layers = 2, .heads = 4, .width = 64}, rng);
  optim::AdamW optimizer(net.parameters(), {.learning_rate = 1e-3});
  Index tokens(Shape{8, 32}), next(Shape{8, 32});
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens.data()[i] = static_cast<std::int64_t>(i % 64);
    next.data()[i] = static_cast<std::int64_t>((i + 1) % 64);
  }
  const auto train = [&](int steps) {
    for (int step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      Tape tape;
      tape.backward(cross_entropy(net(tokens), next));
      optimizer.step();
    }
  };
  train(1);  // unwatched: the first step also takes the memory that the others find
  Profile profile;
  train(quick ? 2 : 20);
  show("\nwhere the time of training goes");
  profile.print(std::cout);
}
// [/profile]

void job(const examples::Common& common) {
  examples::prepare_output_folder(common.out);
  set_threads(1);  // products as small as these take longer on several
  show_regression(common.out);
  show_transformer(common.out);
  show_check_finite();
  show_profile(common.quick);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run(
      argc, argv, "seeing_the_tape", "Prints and draws what a tape holds, finds a NaN's cause, and times every op.",
      [](CLI::App&) {}, job);
}
