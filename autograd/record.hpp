/// record: how an op is put on the tape, with the rule that finds its gradients.
#pragma once

#include <tuple>
#include <vector>

#include "autograd/tape.hpp"

namespace TAPEGRAD {

/// Stands in a rule's parameter list for a value that the rule does not read; such a value is not kept. Nothing can be
/// done with it, so reading it by mistake does not compile.
struct Unread {};

/// An array that only the rule needs (row statistics, say), as an operand of `record`.
struct Saved {
  Tensor array;
};

namespace detail {

template <class T>
constexpr bool kIsSink = false;
template <class T>
constexpr bool kIsSink<Sink<T>> = true;
template <class T>
constexpr bool kIsSink<Sinks<T>> = true;

template <class Call>
struct Signature {
  static constexpr bool takes(std::size_t, std::size_t) { return false; }
};
template <class Rule, class... Parameters>
struct Signature<void (Rule::*)(Parameters...) const> {
  /// Whether the parameters are `values` values, then `sinks` sinks.
  static constexpr bool takes(std::size_t values, std::size_t sinks) {
    std::size_t at = 0;
    return sizeof...(Parameters) == values + sinks &&
           ((kIsSink<std::remove_cvref_t<Parameters>> == (at++ >= values)) && ...);
  }
  template <std::size_t i>
  static constexpr bool reads =
      !std::is_same_v<std::remove_cvref_t<std::tuple_element_t<i, std::tuple<Parameters...>>>, Unread>;
};

void check_version(const char* op, const Tensor& saved, std::uint32_t version);

/// A Tensor whose value a rule reads: an operand, or the output, which needs no link, since its gradient is dy.
struct KeptValue {
  KeptValue(const Tensor& x) : tensor(x), version(x.version()) {}
  template <class T>
  const T& value(const char* op) const {
    check_version(op, tensor, version);
    if constexpr (std::is_same_v<T, Array>) {
      return tensor.value();
    } else {
      return tensor;
    }
  }
  Tensor tensor;
  std::uint32_t version;
};

/// An operand on its way into a step.
template <class Operand>
struct Given {
  Tape& tape;
  const char* op;
  const Operand& operand;
};

/// What a step keeps of an operand: masks and indices as they are.
template <class Operand, bool read>
struct Kept {
  Kept(const Given<Operand>& given) : operand_(given.operand) {}
  template <class T>
  const Operand& value(const char*) const {
    return operand_;
  }
  template <class T>
  std::tuple<> sink(std::vector<Tensor>*) const {
    return {};
  }
  void describe(std::vector<OperandInfo>& out) const {
    const bool is_mask = std::is_same_v<Operand, Mask>;
    out.push_back({nullptr, &operand_.shape(), operand_.size() * sizeof(*operand_.data()), is_mask ? "mask" : "index"});
  }
  Operand operand_;
};

template <>
struct Kept<Saved, true> {
  Kept(const Given<Saved>& given) : saved_(given.operand), version_(given.operand.array.version()) {}
  template <class T>
  const Saved& value(const char* op) const {
    check_version(op, saved_.array, version_);
    return saved_;
  }
  template <class T>
  std::tuple<> sink(std::vector<Tensor>*) const {
    return {};
  }
  void describe(std::vector<OperandInfo>& out) const {
    out.push_back({nullptr, &saved_.array.shape(), saved_.array.size() * sizeof(Real), "saved"});
  }
  Saved saved_;
  std::uint32_t version_;
};

/// The step a gradient goes to; null where nobody wants it.
inline Step* wanted(Step* source) { return source != nullptr && source->wanted ? source : nullptr; }

template <class T>
Sink<T> make_sink(Step* source, [[maybe_unused]] std::vector<Tensor>* gradients) {
  if constexpr (std::is_same_v<T, Array>) {
    return Sink<Array>(wanted(source));
  } else {
    return Sink<Tensor>(wanted(source), gradients);
  }
}

template <>
struct Kept<Tensor, false> {
  Kept(const Given<Tensor>& given) : source_(given.tape.source(given.operand, given.op)) {
    if (source_ == nullptr) constant_shape_ = pool_new<Shape>(given.operand.shape());
  }
  ~Kept() { pool_delete(constant_shape_); }
  Kept(const Kept&) = delete;
  template <class T>
  Unread value(const char*) const {
    return {};
  }
  template <class T>
  std::tuple<Sink<T>> sink(std::vector<Tensor>* gradients) const {
    return {make_sink<T>(source_, gradients)};
  }
  void describe(std::vector<OperandInfo>& out) const {
    out.push_back({source_, source_ ? &source_->shape : constant_shape_, 0, ""});
  }
  Step* source_;
  Shape* constant_shape_ = nullptr;
};

template <>
struct Kept<Tensor, true> : KeptValue {
  Kept(const Given<Tensor>& given) : KeptValue(given.operand), source_(given.tape.source(given.operand, given.op)) {}
  template <class T>
  std::tuple<Sink<T>> sink(std::vector<Tensor>* gradients) const {
    return {make_sink<T>(source_, gradients)};
  }
  void describe(std::vector<OperandInfo>& out) const {
    out.push_back({source_, &tensor.shape(), tensor.size() * sizeof(Real), ""});
  }
  Step* source_;
};

/// A list of Tensors, as concat takes; its rule can't read their values.
template <>
struct Kept<std::vector<Tensor>, false> {
  Kept(const Given<std::vector<Tensor>>& given) {
    sources_.reserve(given.operand.size());
    for (const Tensor& operand : given.operand) sources_.push_back(given.tape.source(operand, given.op));
  }
  template <class T>
  Unread value(const char*) const {
    return {};
  }
  template <class T>
  std::tuple<Sinks<T>> sink(std::vector<Tensor>* gradients) const {
    Sinks<T> sinks;
    sinks.reserve(sources_.size());
    for (Step* source : sources_) sinks.push_back(make_sink<T>(source, gradients));
    return {std::move(sinks)};
  }
  void describe(std::vector<OperandInfo>& out) const {
    for (Step* source : sources_) out.push_back({source, source ? &source->shape : nullptr, 0, ""});
  }
  PoolVector<Step*> sources_;
};

/// Stands for an output that the rule does not read.
struct NoOutput {
  NoOutput(const Tensor&) {}
  template <class T>
  Unread value(const char*) const {
    return {};
  }
};

template <class Rule, class... Operands>
class RecordedStep final : public Step {
  using RuleSignature = Signature<decltype(&Rule::template operator()<Array>)>;
  static constexpr bool kReadsOutput = RuleSignature::template reads<0>;

  template <std::size_t... i>
  static auto kept_types(std::index_sequence<i...>)
      -> std::tuple<Kept<Operands, RuleSignature::template reads<i + 2>>...>;
  using AllKept = decltype(kept_types(std::index_sequence_for<Operands...>()));

 public:
  RecordedStep(Tape& tape, const char* op, const Tensor& y, const Rule& rule, const Operands&... operands)
      : Step(op, y.shape()), rule_(rule), output_(y), kept_(Given<Operands>{tape, op, operands}...) {}

  void backward(const Array& dy) override { apply<Array>(dy, nullptr); }
  void backward(const Tensor& dy, std::vector<Tensor>& gradients) override { apply<Tensor>(dy, &gradients); }
  void describe(std::vector<OperandInfo>& out) const override {
    std::apply([&](const auto&... kept) { (kept.describe(out), ...); }, kept_);
  }
  std::size_t saved_output_bytes() const override { return kReadsOutput ? element_count(shape) * sizeof(Real) : 0; }

 private:
  template <class T>
  void apply(const T& dy, std::vector<Tensor>* gradients) {
    std::apply(
        [&](const auto&... kept) {
          std::apply(
              [&](auto&&... sinks) {
                rule_(output_.template value<T>(name), dy, kept.template value<T>(name)..., sinks...);
              },
              std::tuple_cat(kept.template sink<T>(gradients)...));
        },
        kept_);
  }

  [[no_unique_address]] Rule rule_;
  [[no_unique_address]] std::conditional_t<kReadsOutput, KeptValue, NoOutput> output_;
  AllKept kept_;
};

/// A Parameter is recorded as the Tensor that it is.
template <class Operand>
using OperandType = std::conditional_t<std::is_base_of_v<Tensor, Operand>, Tensor, Operand>;

template <class Operand>
constexpr bool kIsOperand =
    std::is_same_v<Operand, Tensor> || std::is_same_v<Operand, std::vector<Tensor>> || std::is_same_v<Operand, Mask> ||
    std::is_same_v<Operand, Index> || std::is_same_v<Operand, Saved>;

template <class Rule>
constexpr bool kIsGeneric = requires {
  &Rule::template operator()<Array>;
};

template <class Rule, class... Operands>
constexpr bool kTakesOperands = [] {
  if constexpr (kIsGeneric<Rule>) {
    constexpr std::size_t sinks =
        (0 + ... + (std::is_same_v<Operands, Tensor> || std::is_same_v<Operands, std::vector<Tensor>>));
    return Signature<decltype(&Rule::template operator()<Array>)>::takes(2 + sizeof...(Operands), sinks);
  } else {
    return true;  // refused already
  }
}();

inline bool wants_grad(const Tensor& operand) { return operand.requires_grad(); }
inline bool wants_grad(const std::vector<Tensor>& operands) {
  for (const Tensor& operand : operands) {
    if (operand.requires_grad()) return true;
  }
  return false;
}
template <class Constant>
bool wants_grad(const Constant&) {
  return false;
}

}  // namespace detail

/// Records an op on the open tape and returns its output y; without an open tape, or when no operand requires grad, it
/// only returns y. This is how every op of the library is made, and how a user's own op is made.
///
/// `y` is a new Tensor that holds the op's value. `rule` is the backward pass, written once for every order:
///
///   /// a e^b, with da = dy e^b and db = dy y.
///   Tensor times_exp(const Tensor& a, const Tensor& b) {
///     return record(
///         "times_exp", Tensor(a.value() * exp(b.value())),
///         []<class T>(const T& y, const T& dy, Unread, const T& b, Sink<T> da, Sink<T> db) {
///           da += dy * exp(b);
///           db += dy * y;
///         },
///         a, b);
///   }
///
/// It takes the output, its gradient, the operands as given, then one sink for each Tensor operand. A value that it
/// does not read it takes as Unread. With T = Array its expressions are lazy and fuse into the gradient; with T =
/// Tensor it records itself: so call exp, not xt::exp, which knows no Tensor. It may capture attributes only (numbers,
/// axes); an array that it needs is an operand: a Tensor, a Mask, an Index, or Saved.
template <class Rule, class... Operands>
Tensor record(const char* op, Tensor y, const Rule& rule, const Operands&... operands) {
  static_assert(std::is_trivially_copyable_v<Rule>, "a rule captures attributes only: pass arrays as operands");
  static_assert((detail::kIsOperand<detail::OperandType<Operands>> && ...),
                "an operand is a Tensor, a vector of Tensors, a Mask, an Index or Saved");
  static_assert(detail::kIsGeneric<Rule>, "write the rule as []<class T>(const T& y, const T& dy, ...)");
  constexpr bool fits = detail::kTakesOperands<Rule, detail::OperandType<Operands>...>;
  static_assert(fits, "a rule takes y, dy, each operand, then one Sink per Tensor operand, and returns nothing");
  if constexpr (detail::kIsGeneric<Rule> && fits) {  // else the compiler would go on about what follows from it
    Tape* tape = Tape::open();
    if (tape == nullptr || !(detail::wants_grad(static_cast<const detail::OperandType<Operands>&>(operands)) || ...)) {
      return y;
    }
    Cell& cell = y.cell();
    require(cell.leaf && !cell.requires_grad, op, "the recorded value must be a new Tensor");
    cell.step =
        tape->append<detail::RecordedStep<Rule, detail::OperandType<Operands>...>>(*tape, op, y, rule, operands...);
    cell.tape = tape->id();
    cell.requires_grad = true;
    cell.leaf = false;
    if (tape->watched()) [[unlikely]]
      tape->tell(*cell.step, y);
  }
  return y;
}

}  // namespace TAPEGRAD
