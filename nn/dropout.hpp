/// Dropout: elements dropped at random while a network is trained.
#pragma once

#include "autograd/random.hpp"
#include "nn/module.hpp"

namespace TAPEGRAD::nn {

/// `dropout(x, p, rng)` in training; x itself after `eval()`. The Rng is the caller's and must outlive this.
class Dropout : public Module {
 public:
  /// Refuses a p outside [0,1].
  Dropout(double p, Rng& rng) : p_(p), rng_(rng) { require(p >= 0 && p <= 1, "Dropout", "p must be from 0 to 1", p); }

  /// Whether elements are dropped now.
  bool active() const { return training() && p_ > 0; }

  Tensor operator()(const Tensor& x) {
    const NamedScope name = named_scope();
    return active() ? dropout(x, p_, rng_) : x;
  }

 private:
  double p_;
  Rng& rng_;
};

}  // namespace TAPEGRAD::nn
