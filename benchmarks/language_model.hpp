/// The language model of the rows gpt_cpu and gpt_mid.
#pragma once

#include "tapegrad.hpp"

namespace benchmarks {

using namespace tapegrad;

struct Sizes {
  std::size_t batch, length, layers, heads, width;
};

/// nanoGPT's model and training step on one batch of random tokens; norms don't decay.
struct LanguageModelState {
  explicit LanguageModelState(const Sizes& sizes)
      : net({.vocabulary = 65,
             .context = sizes.length,
             .layers = sizes.layers,
             .heads = sizes.heads,
             .width = sizes.width},
            rng),
        parameters(net.parameters()),
        tokens(Shape{sizes.batch, sizes.length}),
        next(Shape{sizes.batch, sizes.length}),
        optimizer(groups(), {.learning_rate = 3e-4, .beta2 = 0.99, .weight_decay = 0.1}) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens.data()[i] = static_cast<std::int64_t>(rng.below(65));
      next.data()[i] = static_cast<std::int64_t>(rng.below(65));
    }
  }

  std::vector<optim::Group> groups() const {
    optim::Group maps, norms{{}, {}, 0.0};
    for (const Parameter& parameter : parameters) {
      (parameter.rank() > 1 ? maps : norms).parameters.push_back(parameter);
    }
    return {maps, norms};
  }

  Rng rng{0};
  nn::LanguageModel net;
  std::vector<Parameter> parameters;
  Index tokens, next;
  optim::AdamW optimizer;
};

inline constexpr Sizes kSmall{12, 64, 4, 4, 128};
inline constexpr Sizes kMiddle{8, 256, 6, 6, 384};

}  // namespace benchmarks
