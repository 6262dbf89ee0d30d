/// Seeing the tape: what it holds, where numbers stop being finite, and where time and memory go.
///
/// Each is an object that watches the tapes of this thread while it lives: the one that is open, and those opened
/// after.
///
///   TapeView view;                 // or CheckFinite check; or Profile profile;
///   { Tape tape; tape.backward(loss(model)); }
///   view.print(std::cout);
///
/// Without one, a step costs one comparison more. Watchers end in the order opposite to the one they were made in, on
/// the thread that made them.
#pragma once

#include <chrono>
#include <map>

#include "autograd/tape.hpp"

namespace TAPEGRAD {

/// What a tape tells while it works; override what is of interest. An exception ends the tape's work as one from the op
/// itself does: nothing is half done.
class Watcher {
 public:
  Watcher();
  virtual ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 protected:
  /// A tape was made.
  virtual void opened(const Tape&) {}
  /// A step was recorded, y being its output. A leaf is recorded when an op first uses it.
  virtual void recorded(const Tape&, const Step&, const Tensor& y) { (void)y; }
  /// A step's rule is about to run on its gradient dy; a leaf's does nothing.
  virtual void before_rule(const Tape&, const Step&, const Array& dy) { (void)dy; }
  /// It has run: the operands' adjoints have their terms.
  virtual void after_rule(const Tape&, const Step&, const Array& dy) { (void)dy; }

 private:
  friend class Tape;
  /// Tells this thread's watchers that the tape is open; returns the innermost of them.
  static Watcher* greet(const Tape& tape);
  Watcher* next_;
};

/// One step as it is shown, after its tape has dropped it too.
struct StepView {
  struct Name {
    const char* name;
    std::uint32_t first;  // the step it begins with: two calls of one module are two names
    bool operator==(const Name&) const = default;
  };
  struct Operand {
    std::ptrdiff_t source;  // the number of the step that made it, -1 for what no step made
    std::string kind;       // of that: "const", "mask", "index" or "saved"
    std::string shape;
    std::size_t saved;  // bytes that the step keeps of it
  };
  const char* op;
  Shape shape;
  bool leaf;
  std::vector<Name> names;  // outermost first
  std::vector<Operand> operands;
  std::size_t saved_output;  // bytes
  Tensor value;              // undefined where it was not watched
  Tensor gradient;           // undefined where none arrived, or it was not watched
};

/// The step at that place of a tape, without value and gradient.
StepView view_of(const Tape& tape, const Step& step);

/// Keeps every step of the tape that recorded last, with its value and, after a backward pass, its gradient, until
/// another tape (or the same one, after a backward pass) records. All these arrays stay in memory: for looking at a
/// step of training, not for training. The gradients of a pass with create_graph are steps like any other.
class TapeView : public Watcher {
 public:
  const std::vector<StepView>& steps() const { return steps_; }

  /// As Tape::print, with the values and gradients: all numbers of up to six, else least, largest and mean.
  void print(std::ostream& out, const ShowOptions& options = {}) const;
  /// As Tape::to_dot, with the values and gradients.
  std::string to_dot(const ShowOptions& options = {}) const;

 private:
  void recorded(const Tape& tape, const Step& step, const Tensor& y) override;
  void before_rule(const Tape& tape, const Step& step, const Array& dy) override;

  std::vector<StepView> steps_;
  std::uint64_t tape_ = 0;
};

/// Refuses the first value of a step, or gradient that a rule makes, that has a NaN or an infinity, in one line with
/// the step's number, op, shapes and names:
///
///   [check_finite] step 7 'log' in encoder.layers.0 makes -inf at element 3; got y (2,3) of x0 #6 mul (2,3)
///
/// Constants are seen only in what is made of them; leaves are steps. Not for models that calculate with infinities
/// (an additive mask of -inf, say). A pass with create_graph is watched by the values of the steps it records.
class CheckFinite : public Watcher {
  void recorded(const Tape& tape, const Step& step, const Tensor& y) override;
  void before_rule(const Tape& tape, const Step& step, const Array& dy) override;
  void after_rule(const Tape& tape, const Step& step, const Array& dy) override;
};

/// Time and bytes by op, over all tapes that it watches.
///
/// Backward time is that of the rules themselves. Forward time is what has passed since the step before (or since the
/// tape was opened, or its last rule ended), so that it includes what the program did in between: what needs no
/// gradient, say. Watching makes both longer, by some 150 ns a step.
class Profile : public Watcher {
 public:
  struct Row {
    std::size_t calls = 0;
    double forward = 0;      ///< seconds
    double backward = 0;     ///< seconds
    std::size_t output = 0;  ///< bytes of the outputs
    std::size_t saved = 0;   ///< bytes kept for the rules; an array counts in each step that keeps it
  };
  const std::map<std::string, Row>& rows() const { return rows_; }

  /// The ops, the longest time first, and their sum.
  void print(std::ostream& out) const;

 private:
  using Clock = std::chrono::steady_clock;
  void opened(const Tape& tape) override;
  void recorded(const Tape& tape, const Step& step, const Tensor& y) override;
  void before_rule(const Tape& tape, const Step& step, const Array& dy) override;
  void after_rule(const Tape& tape, const Step& step, const Array& dy) override;

  std::map<std::string, Row> rows_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace TAPEGRAD
