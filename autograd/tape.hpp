/// The tape: ops record themselves on it, and one loop from the last step to the first finds every gradient.
///
///   Tape tape;                        // opens a tape on this thread
///   Tensor loss = sum(square(w * x));
///   tape.backward(loss);              // w.grad() is d loss / d w
///
/// Throughout the project, `dy` is the gradient of the loss with respect to `y` and has y's shape.
#pragma once

#include <iosfwd>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/tensor.hpp"

namespace TAPEGRAD {

/// Stands in a rule's parameter list for a value that the rule does not read; such a value is not kept. Nothing can be
/// done with it, so reading it by mistake does not compile.
struct Unread {};

/// An array that only the rule needs (row statistics, say), as an operand of `record`.
struct Saved {
  Tensor array;
};

class Watcher;

/// What a printed tape says about one operand of a step.
struct OperandInfo {
  const Step* source;  // the step that made it, null for a constant
  const Shape* shape;  // null where it is not known
  std::size_t saved;   // bytes that the step keeps of it
  const char* kind;    // "", "mask", "index", "saved"
};

/// One recorded op. Steps live in the tape's arena; links between them are plain pointers to earlier steps.
struct Step {
  Step(const char* step_name, const Shape& output_shape) : name(step_name), shape(output_shape) {}
  virtual ~Step() { pool_delete(adjoint); }
  Step(const Step&) = delete;

  /// Runs the rule on arrays: the gradients go to the sources' adjoints.
  virtual void backward(const Array& dy) = 0;
  /// Runs the rule on Tensors, recording it: the gradients go to `gradients`, by the sources' indices.
  virtual void backward(const Tensor& dy, std::vector<Tensor>& gradients) = 0;
  virtual void describe(std::vector<OperandInfo>& operands) const = 0;
  virtual std::size_t saved_output_bytes() const { return 0; }
  /// The Tensor that a leaf's step stands for, null for an op's.
  virtual const Tensor* leaf() const { return nullptr; }

  const char* name;
  Shape shape;               // of the output, so of the adjoint too
  Array* adjoint = nullptr;  // the gradient gathered so far, null while it is zero
  bool borrows = false;      // its gradient so far is the one of the step whose rule runs, which it will take over
  std::uint32_t index = 0;
  bool wanted = true;     // whether anybody asks for its gradient
  bool runs = true;       // whether anybody asks for an operand's gradient, so that the rule has something to do
  bool retained = false;  // whether its adjoint is read after the backward pass
};

/// The matrix product op(a) op(b), not yet computed; see `matmul` in kernels.hpp.
struct Product;

/// Where a rule puts a gradient: `dx += expression`. It skips a gradient that nobody wants, sums one that is larger
/// than the operand down to the operand's shape (undoing broadcasting), builds the first in place and adds the others.
template <class T>
class Sink;

template <>
class Sink<Array> {
 public:
  explicit Sink(Step* step) : step_(step) {}

  /// Whether the gradient is wanted; ask before work that `+=` would not skip.
  explicit operator bool() const { return step_ != nullptr; }
  /// The operand's shape. Only for a wanted gradient.
  const Shape& shape() const { return step_->shape; }

  template <class E>
  void operator+=(const xt::xexpression<E>& gradient) const {
    if (step_ == nullptr) return;
    if (step_->borrows) settle();
    const E& expression = gradient.derived_cast();
    const auto& shape = expression.shape();
    if (!std::equal(shape.begin(), shape.end(), step_->shape.begin(), step_->shape.end())) {
      *this += Array(expression);  // xtensor's own += would resize
    } else if (step_->adjoint == nullptr) {
      step_->adjoint = evaluate<Array>(expression);
    } else if (step_->shape.empty()) {
      step_->adjoint->data()[0] += expression();
    } else {
      step_->adjoint->plus_assign(expression);
    }
  }
  void operator+=(const Array& gradient) const;
  void operator+=(Array&& gradient) const;
  void operator+=(const Product& gradient) const;

  /// The operand's gradient so far (zeros at first), for kernels that add to several in one pass; null when unwanted.
  Array* buffer() const;

  /// The same, but whether to add to it is said, and if not, its elements are yet to be written.
  struct Room {
    Array* array;
    bool add;
  };
  Room room() const;

 private:
  void settle() const;  // copies a borrowed gradient, which is about to be changed

  Step* step_;
};

template <>
class Sink<Tensor> {
 public:
  Sink(Step* step, std::vector<Tensor>* gradients) : step_(step), gradients_(gradients) {}
  explicit operator bool() const { return step_ != nullptr; }
  const Shape& shape() const { return step_->shape; }
  void operator+=(const Tensor& gradient) const;

 private:
  Step* step_;
  std::vector<Tensor>* gradients_;
};

template <class T>
using Sinks = PoolVector<Sink<T>>;

struct BackwardOptions {
  Tensor seed = {};           // dy of the output; may be left out for an output of one element, where it is 1
  bool keep = false;          // keep the steps for another backward pass
  bool create_graph = false;  // record the pass itself, so that gradients can be differentiated; implies keep
};

/// What this thread's ops record on, from its construction on, until it or a newer one is closed. Another thread may
/// close it only while this one lives and uses no tape.
class Scope {
 public:
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 protected:
  explicit Scope(Tape* tape);
  ~Scope();

 private:
  friend class Tape;
  Tape* tape_;
  Scope* outer_;
  Scope** list_;  // the innermost scope of the thread that opened it
};

/// A name for the steps from `first` on, until `last` if it has ended.
struct StepName {
  static constexpr std::uint32_t kOpen = UINT32_MAX;
  const char* name;
  std::uint32_t first;
  std::uint32_t last = kOpen;
};

/// How much of a tape is shown.
struct ShowOptions {
  std::size_t depth = SIZE_MAX;  ///< names inside so many others are folded to one row or node; 0 folds the outermost
};

/// Records the ops of this thread from its construction on, unless a newer Tape or NoTape is open.
class Tape : public Scope {
 public:
  Tape();
  ~Tape();

  /// The innermost open tape of this thread; null when there is none, which means inference.
  static Tape* open();

  /// Adds d y / d leaf to `.grad` of every leaf that y depends on. The steps are freed as the pass goes, and the tape
  /// starts again empty, unless `keep`. When anything throws, every `.grad` is as it was; the tape is as it was when
  /// the call was refused or `keep` given, else empty. Refuses a y that depends on nothing that requires grad, or is on
  /// no tape or another one; a y of several elements without a seed; and create_graph, which is for `gradient`.
  void backward(const Tensor& y, const BackwardOptions& options = {});

  /// d y / d x for each x, leaf or not, without touching any `.grad`; zeros where y does not depend on x. Refuses what
  /// backward does, and an x that does not require grad or was recorded on another tape.
  std::vector<Tensor> gradient(const Tensor& y, const std::vector<Tensor>& xs, const BackwardOptions& options = {});

  /// The number of recorded steps, leaves included.
  std::size_t size() const { return steps_.size(); }

  /// Table of the steps: op, shapes in and out, and what each saved. A TapeView shows values and gradients too.
  void print(std::ostream& out, const ShowOptions& options = {}) const;
  /// The steps as a graph in Graphviz's DOT language, what a NamedScope named in a frame.
  std::string to_dot(const ShowOptions& options = {}) const;

  // For `record`, NamedScope and TapeView:
  std::uint64_t id() const { return id_; }
  bool watched() const { return watcher_ != nullptr; }
  void tell(const Step& step, const Tensor& y) const;
  void begin_name(const char* name);
  void end_name() noexcept;
  const PoolVector<StepName>& names() const { return names_; }
  const Step& operator[](std::size_t i) const { return *steps_[i]; }
  /// The step that made this operand; null for a constant. A leaf gets a step of its own at its first use.
  Step* source(const Tensor& operand, const char* op) {
    const Cell& cell = operand.cell();
    if (!cell.requires_grad) return nullptr;
    return cell.tape == id_ ? cell.step : adopt(operand, op);
  }
  template <class StepType, class... Args>
  StepType* append(Args&&... args) {
    static_assert(sizeof(StepType) <= kChunk && alignof(StepType) <= 16, "a rule's attributes must be small");
    StepType* step = new (allocate(sizeof(StepType))) StepType(std::forward<Args>(args)...);
    step->index = static_cast<std::uint32_t>(steps_.size());
    try {
      steps_.push_back(step);
    } catch (...) {
      step->~StepType();
      throw;
    }
    return step;
  }

 private:
  friend class Watcher;
  Step* adopt(const Tensor& operand, const char* op);
  void backward_watched(Step& step) const;
  /// What the old one watches on this thread, another watches.
  static void replace_watcher(const Watcher* old, Watcher* watcher) noexcept;
  void* allocate(std::size_t bytes);
  void restart() noexcept;
  void destroy(Step*& step) noexcept;
  Step* last_step(const Tensor& y, const char* who, const BackwardOptions& options);
  void run(Step* last, const Tensor& seed, bool keep);
  std::vector<Tensor> run_recorded(Step* last, const Tensor& seed);
  std::vector<Step*> sources_of(const Tensor& x);
  void want_only(const std::vector<std::vector<Step*>>& sources);
  void want_all() noexcept;
  void commit() noexcept;

  static constexpr std::size_t kChunk = 64 * 1024;

  std::uint64_t id_;
  PoolVector<Step*> steps_;
  PoolVector<Step*> leaves_;
  PoolVector<std::byte*> chunks_;
  PoolVector<StepName> names_;
  std::size_t used_ = 0;
  bool busy_ = false;  // while steps run
  Watcher* watcher_;   // null where nobody watches
};

/// While it lives, this thread records nothing, as if no tape were open; but a Tape made meanwhile records.
struct NoTape : Scope {
  NoTape() : Scope(nullptr) {}
};

/// Names the steps that are recorded while it lives, on the tape that is open when it is made; names nest. The modules
/// in nn name theirs, as `named_parameters` does.
///
///   NamedScope name("encoder");  // a name that outlives the tape and its views: a literal, say; none when null
class NamedScope {
 public:
  explicit NamedScope(const char* name) : tape_(name == nullptr ? nullptr : Tape::open()) {
    if (tape_ != nullptr) tape_->begin_name(name);
  }
  ~NamedScope() {
    if (tape_ != nullptr && tape_ == Tape::open()) tape_->end_name();
  }
  NamedScope(const NamedScope&) = delete;
  NamedScope& operator=(const NamedScope&) = delete;

 private:
  Tape* tape_;
};

// ---- record -------------------------------------------------------------------------------------------------------

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
