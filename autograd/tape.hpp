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
#include <vector>

#include "autograd/step.hpp"

namespace TAPEGRAD {

class Watcher;

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
  struct Busy {
    explicit Busy(bool& tape_is) : flag(tape_is) { flag = true; }
    ~Busy() { flag = false; }
    bool& flag;
  };
  Step* adopt(const Tensor& operand, const char* op);
  void backward_watched(Step& step) const;
  /// What the old one watches on this thread, another watches.
  static void replace_watcher(const Watcher* old, Watcher* watcher) noexcept;
  void* allocate(std::size_t bytes);
  void restart() noexcept;
  void destroy(Step*& step) noexcept;
  static Tensor seed_of(const Tensor& y, const BackwardOptions& options);
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

}  // namespace TAPEGRAD
