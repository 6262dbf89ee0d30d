#include "nn/causality.hpp"

#include <cstring>

namespace TAPEGRAD::nn {
namespace {

/// Input is a Tensor or an Index; `change(input, item, t)` is a copy of it with position t of that item changed.
template <class Input, class Change>
CausalityReport check(const std::function<Tensor(const Input&)>& f, const Input& input, Change change) {
  const NoTape no_tape;
  require(input.rank() >= 2, "check_causality", "the input must be (B,T,...)", input.shape());
  const std::size_t batch = input.shape()[0];
  const std::size_t length = input.shape()[1];
  const Tensor before = f(input);
  require(before.rank() >= 2 && before.extent(0) == batch && before.extent(1) == length, "check_causality",
          "the output must have the input's batch and length", before.shape(), input.shape());
  const auto same = [&](const Tensor& after, std::size_t first, std::size_t count) {
    const std::size_t width = before.size() / (batch * length);
    return std::memcmp(before.value().data() + first * width, after.value().data() + first * width,
                       count * width * sizeof(Real)) == 0;
  };
  if (before.size() == 0) return {};
  require(same(f(input), 0, batch * length), "check_causality",
          "f must give the same output for the same input: is dropout active?");
  for (std::size_t item = 0; item < batch; ++item) {
    for (std::size_t t = 0; t < length; ++t) {
      const Tensor after = f(change(input, item, t));
      require(after.shape() == before.shape(), "check_causality", "the output must keep its shape", after.shape(),
              before.shape());
      for (std::size_t row = 0; row < batch * length; ++row) {
        const bool may_change = row / length == item && row % length >= t;
        if (may_change || same(after, row, 1)) continue;
        CausalityReport report{false, item, t, row % length, ""};
        report.message = "changing the input of item " + std::to_string(item) + " at position " + std::to_string(t) +
                         " changed the output of item " + std::to_string(row / length) + " at position " +
                         std::to_string(row % length);
        return report;
      }
    }
  }
  return {};
}

}  // namespace

CausalityReport check_causality(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  for (const Real element : x.value().storage()) {
    require(element == element, "check_causality", "the input must not be NaN, which no change changes");
  }
  return check(f, x, [](const Tensor& input, std::size_t item, std::size_t t) {
    Array changed = input.value();
    const std::size_t length = input.extent(1);
    const std::size_t width = input.size() / (input.extent(0) * length);
    Real* row = changed.data() + (item * length + t) * width;
    for (std::size_t i = 0; i < width; ++i) {  // each gets another sign, and not all move by the same amount
      const Real shift = static_cast<Real>(1 + i % 3);
      row[i] = row[i] < 0 ? shift - row[i] : -shift - row[i];
    }
    return Tensor(std::move(changed));
  });
}

CausalityReport check_causality(const std::function<Tensor(const Index&)>& f, const Index& tokens,
                                std::int64_t vocabulary) {
  require(vocabulary >= 2 && tokens.rank() == 2, "check_causality",
          "tokens must be (B,T), with at least 2 in the vocabulary", tokens.shape(), vocabulary);
  return check(f, tokens, [vocabulary](const Index& input, std::size_t item, std::size_t t) {
    Index changed(input.shape(), input);
    std::int64_t& token = changed.data()[item * input.shape()[1] + t];
    token = (token + 1) % vocabulary;
    return changed;
  });
}

}  // namespace TAPEGRAD::nn
