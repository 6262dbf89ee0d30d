// What a training is made of: options of the command line, kept in the checkpoint.
#pragma once

#include "examples/support/settings.hpp"

namespace translate {

struct Settings {
  std::size_t width = 64, layers = 2, heads = 4, steps = 0, batch = 64;
  double learning_rate = 0.002, dropout = 0, needed = 99;
  std::size_t first = 0, longest = 50, min_frequency = 2;
  double held_out = 10;
  std::uint64_t seed = 0;

  /// Calls visit(name, field, lowest, highest, help) for each.
  void each(auto&& visit) {
    visit("width", width, 4, 1024, "numbers that stand for a token [64; 128 with --pairs]");
    visit("layers", layers, 1, 12, "in the encoder, and as many in the decoder [2]");
    visit("heads", heads, 1, 64, "of attention, dividing the width [4]");
    visit("steps", steps, 1, 10000000,
          "of training [1500; with --quick 700; with --pairs 30 times all, from 400 to 20000; with both 300]");
    visit("batch", batch, 1, 4096, "pairs in a step [64; 32 with --quick]");
    visit("learning-rate", learning_rate, 1e-9, 10, "at its highest [0.002; 0.004 with --quick; 0.001 with --pairs]");
    visit("dropout", dropout, 0, 0.9, "in training [0; 0.1 with --pairs]");
    visit("needed", needed, 0, 100,
          "percent of the test that must be exact, for exit code 0 [99; 80 with --quick; 0 with --pairs]");
    visit("first", first, 0, 100000000, "how many pairs of the file are used, 0 for all [0; 1000 with --quick]");
    visit("longest", longest, 1, 1000, "tokens of a side; pairs with more are left out [50]");
    visit("min-frequency", min_frequency, 1, 1000000, "a word that comes less often in the file is unknown [2]");
    visit("held-out", held_out, 0, 50, "percent of the file's sources, for the test; 0: test what was trained on [10]");
  }

  /// The defaults that depend on what is to be learned; `steps` is left at 0 for pairs.
  void choose(const CLI::App& app, bool pairs, bool quick) {
    const auto set = examples::setter_of_defaults(app);
    if (!pairs) set("--steps", steps, quick ? 700 : 1500);
    if (!pairs && quick) {
      set("--needed", needed, 80);
      set("--learning-rate", learning_rate, 0.004);
    }
    if (quick) set("--batch", batch, 32);
    if (!pairs) return;
    if (quick) {
      set("--steps", steps, 300);
      set("--first", first, 1000);
    }
    set("--width", width, 128);
    set("--learning-rate", learning_rate, 0.001);
    set("--dropout", dropout, 0.1);
    set("--needed", needed, 0);
  }

  /// Numbers of the maps and embeddings of such a net.
  std::size_t parameters(std::size_t source_words, std::size_t target_words) const {
    return (28 * layers * width + source_words + target_words) * width;
  }
};

}  // namespace translate
