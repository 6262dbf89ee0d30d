/// check_causality: a test, for any model, that no output sees a later input.
#pragma once

#include <functional>
#include <string>

#include "autograd/ops.hpp"

namespace TAPEGRAD::nn {

struct CausalityReport {
  bool causal = true;
  /// Where it is not: changing the input of batch item `item` at position `changed` changed the output at position
  /// `leaked`, which comes before it or is another item's.
  std::size_t item = 0;
  std::size_t changed = 0;
  std::size_t leaked = 0;
  /// The same in one line; empty when causal.
  std::string message;
  explicit operator bool() const { return causal; }
};

/// Changes the input one position at a time, in one batch item after the other, and requires every output at an
/// earlier position, and every output of the other items, to stay the same bit for bit. f maps an input of shape
/// (B,T,...) to an output (B,T,...); it is called 1 + B T times, without a tape, in whatever mode its modules are.
/// Refused when f gives two answers for one input (dropout is active, say) or an output of another length.
///
///   const nn::CausalityReport report = nn::check_causality([&](const Tensor& x) { return model(x); }, x);
///   if (!report) throw std::runtime_error(report.message);
CausalityReport check_causality(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);

/// The same for tokens (B,T), each changed to another one below `vocabulary`, at least 2.
CausalityReport check_causality(const std::function<Tensor(const Index&)>& f, const Index& tokens,
                                std::int64_t vocabulary);

}  // namespace TAPEGRAD::nn
