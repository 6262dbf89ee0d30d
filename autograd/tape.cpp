#include "autograd/tape.hpp"

#include "autograd/kernels.hpp"
#include "autograd/ops.hpp"
#include "autograd/shapes.hpp"
#include "autograd/watch.hpp"

namespace TAPEGRAD {
namespace {

thread_local Scope* innermost = nullptr;
constinit thread_local const char* running = "record";  // the op whose rule runs, for what its sinks refuse
std::atomic<std::uint64_t> next_id{1};

/// Stands on the tape for a Tensor that the user made; its adjoint becomes the Tensor's gradient.
struct LeafStep final : Step {
  explicit LeafStep(const Tensor& leaf_tensor) : Step("leaf", leaf_tensor.shape()), tensor(leaf_tensor) {
    retained = true;
  }
  void backward(const Array&) override {}
  void backward(const Tensor&, std::vector<Tensor>&) override {}
  void describe(std::vector<OperandInfo>&) const override {}
  const Tensor* leaf() const override { return &tensor; }
  Tensor tensor;
};

struct Busy {
  explicit Busy(bool& tape_is) : flag(tape_is) { flag = true; }
  ~Busy() { flag = false; }
  bool& flag;
};

/// After it, one push_back can't throw.
template <class T>
void make_room(PoolVector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 16);
}

}  // namespace

// ---- opening and closing ------------------------------------------------------------------------------------------

Scope::Scope(Tape* tape) : tape_(tape), outer_(innermost), list_(&innermost) { innermost = this; }

Scope::~Scope() {
  // Usually this is the innermost scope; one that lived on the heap may be closed out of order, or by another thread.
  for (Scope** link = list_; *link != nullptr; link = &(*link)->outer_) {
    if (*link == this) {
      *link = outer_;
      break;
    }
  }
}

void Tape::replace_watcher(const Watcher* old, Watcher* watcher) noexcept {
  for (Scope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->tape_ != nullptr && scope->tape_->watcher_ == old) scope->tape_->watcher_ = watcher;
  }
}

Tape* Tape::open() { return innermost == nullptr ? nullptr : innermost->tape_; }

Tape::Tape() : Scope(this), id_(next_id++), watcher_(Watcher::greet(*this)) {}

Tape::~Tape() {
  restart();
  for (std::byte* chunk : chunks_) pool_deallocate(chunk, kChunk);
}

void* Tape::allocate(std::size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  if (chunks_.empty() || used_ + bytes > kChunk) {
    make_room(chunks_);
    chunks_.push_back(static_cast<std::byte*>(pool_allocate(kChunk)));
    used_ = 0;
  }
  return chunks_.back() + std::exchange(used_, used_ + bytes);
}

void Tape::destroy(Step*& step) noexcept {
  if (step != nullptr) step->~Step();
  step = nullptr;
}

/// Drops every step. Tensors recorded before belong to no open tape from here on.
void Tape::restart() noexcept {
  for (std::size_t i = steps_.size(); i-- > 0;) destroy(steps_[i]);
  steps_.clear();
  leaves_.clear();
  std::erase_if(names_, [](const StepName& name) { return name.last != StepName::kOpen; });
  for (StepName& name : names_) name.first = 0;
  while (chunks_.size() > 1) {
    pool_deallocate(chunks_.back(), kChunk);
    chunks_.pop_back();
  }
  used_ = 0;
  id_ = next_id++;
}

// ---- recording ----------------------------------------------------------------------------------------------------

Step* Tape::adopt(const Tensor& operand, const char* op) {
  Cell& cell = operand.cell();
  require(
      cell.leaf, op,
      "an operand was recorded on a tape that is consumed, closed or not the innermost: say detach() to use its value",
      operand.shape());
  make_room(leaves_);
  cell.step = append<LeafStep>(operand);
  cell.tape = id_;
  leaves_.push_back(cell.step);
  if (watched()) [[unlikely]]
    tell(*cell.step, operand);
  return cell.step;
}

void detail::check_version(const char* op, const Tensor& saved, std::uint32_t version) {
  require(saved.version() == version, op, "a value that backward needs was changed in place after it was saved",
          saved.shape());
}

// ---- sinks --------------------------------------------------------------------------------------------------------

/// The gradient, summed down to the shape of the operand that `source` made.
template <class T>
static T fitted(const T& gradient, const Step& source) {
  if (!broadcasts_to(source.shape, gradient.shape())) {
    refuse(running,
           std::string("the rule's gradient of an operand from '") + source.name +
               "' must have the operand's shape, or one that it broadcasts to",
           to_text(gradient.shape()) + " and " + to_text(source.shape));
  }
  return sum_to(gradient, source.shape);
}

/// The gradient of the step whose rule runs, where it is not read afterwards, and the step that gets it whole: `dx +=
/// dy` then moves it instead of copying.
struct Loan {
  const Array* dy = nullptr;
  Step* taker = nullptr;
};
static thread_local Loan loan;

void Sink<Array>::settle() const {
  loan.taker = nullptr;
  step_->borrows = false;
  step_->adjoint = pool_new<Array>(*loan.dy);
}

void Sink<Array>::operator+=(const Array& gradient) const {
  if (step_ == nullptr) return;
  if (step_->borrows) settle();
  if (gradient.shape() != step_->shape) {
    *this += fitted(gradient, *step_);
  } else if (step_->adjoint == nullptr && &gradient == loan.dy && loan.taker == nullptr) {
    loan.taker = step_;
    step_->borrows = true;
  } else if (step_->adjoint == nullptr) {
    step_->adjoint = evaluate<Array>(gradient);
  } else {
    add_in_place(*step_->adjoint, gradient);
  }
}

void Sink<Array>::operator+=(Array&& gradient) const {
  if (step_ == nullptr) return;
  if (step_->borrows) settle();
  if (gradient.shape() != step_->shape) gradient = fitted(gradient, *step_);
  if (step_->adjoint == nullptr) {
    step_->adjoint = pool_new<Array>(std::move(gradient));
  } else {
    add_in_place(*step_->adjoint, gradient);
  }
}

void Sink<Array>::operator+=(const Product& gradient) const {
  if (step_ == nullptr) return;
  if (step_->borrows) settle();
  const Shape& shape = step_->shape;
  if (shape.size() < 2 || !std::equal(shape.end() - 2, shape.end(), gradient.shape.end() - 2)) {
    *this += gradient.evaluate();  // only batch axes can be summed over on the way
    return;
  }
  if (step_->adjoint != nullptr) {
    gradient.fill(*step_->adjoint, true);
    return;
  }
  Array first = empty_array(step_->shape);
  gradient.fill(first, false);
  step_->adjoint = pool_new<Array>(std::move(first));
}

Array* Sink<Array>::buffer() const {
  if (step_ == nullptr) return nullptr;
  if (step_->borrows) settle();
  if (step_->adjoint == nullptr) step_->adjoint = pool_new<Array>(step_->shape, Real(0));
  return step_->adjoint;
}

Sink<Array>::Room Sink<Array>::room() const {
  if (step_ == nullptr || step_->borrows || step_->adjoint != nullptr) return {buffer(), true};
  step_->adjoint = pool_new<Array>(empty_array(step_->shape));
  return {step_->adjoint, false};
}

void Sink<Tensor>::operator+=(const Tensor& gradient) const {
  if (step_ == nullptr) return;
  Tensor& sum = (*gradients_)[step_->index];
  const Tensor term = gradient.shape() == step_->shape ? gradient : fitted(gradient, *step_);
  sum = sum.defined() ? sum + term : term;
}

// ---- backward -----------------------------------------------------------------------------------------------------

Step* Tape::last_step(const Tensor& y, const char* who, const BackwardOptions& options) {
  const Cell& cell = y.cell();
  require(!busy_, who, "a rule can't run the tape that runs it");
  require(cell.requires_grad, who,
          "the output depends on nothing that requires grad (was a Tape open, does an input require grad, and if the "
          "output is a gradient, was .create_graph = true passed to the first one?)",
          y.shape());
  require(cell.tape == id_ || cell.leaf, who,
          "the output is not on this tape, or the tape was consumed by an earlier backward: pass keep to run it twice",
          y.shape());
  require(options.seed.defined() || y.size() == 1, who, "an output of more than one element needs a seed", y.shape());
  if (options.seed.defined()) {
    require(options.seed.shape() == y.shape(), who, "the seed must have the output's shape", options.seed.shape(),
            y.shape());
  }
  require(!options.create_graph || open() == this, who, "create_graph needs this tape to be the innermost open one");
  for (const Step* step : leaves_) {
    require(step->leaf()->shape() == step->shape, who, "a leaf's shape must stay as it was when it was recorded",
            step->leaf()->shape(), step->shape);
  }
  return source(y, who);
}

static Tensor seed_of(const Tensor& y, const BackwardOptions& options) {
  return options.seed.defined() ? options.seed : Tensor(Array(y.shape(), Real(1)));
}

/// Runs the step's rule; afterwards its adjoint belongs to the step that borrowed it, if one did.
static void run_rule(Step& step) {
  const Loan outer = std::exchange(loan, {step.retained ? nullptr : step.adjoint, nullptr});
  try {
    step.backward(*step.adjoint);
  } catch (...) {
    if (loan.taker != nullptr) loan.taker->borrows = false;
    loan = outer;
    throw;
  }
  if (loan.taker != nullptr) {
    loan.taker->borrows = false;
    loan.taker->adjoint = std::exchange(step.adjoint, nullptr);
  }
  loan = outer;
}

void Tape::run(Step* last, const Tensor& seed, bool keep) {
  const Busy busy(busy_);
  const NoTape no_recording;  // a rule that computes with Tensors must not add steps to this loop
  try {
    if (last->retained || watched()) last->adjoint = pool_new<Array>(seed.value());  // else it is only read
    for (std::size_t i = last->index + std::size_t{1}; i-- > 0;) {
      Step*& step = steps_[i];
      running = step->name;
      if (step->runs && step->adjoint != nullptr) {
        watched() ? backward_watched(*step) : run_rule(*step);
      } else if (step->runs && step == last) {
        step->backward(seed.value());
      }
      if (step->retained) continue;
      if (keep) {
        pool_delete(std::exchange(step->adjoint, nullptr));
      } else {
        destroy(step);
      }
    }
  } catch (...) {
    want_all();
    if (!keep) restart();
    throw;
  }
}

void Tape::backward(const Tensor& y, const BackwardOptions& options) {
  require(!options.create_graph, "backward", "create_graph is for gradient(): .grad holds plain arrays");
  Step* last = last_step(y, "backward", options);
  for (const Step* step : leaves_) {
    const Array* grad = step->leaf()->cell().grad;
    if (grad == nullptr) continue;
    require(grad->shape() == step->shape, "backward", "a gradient that is added to must have its Tensor's shape",
            grad->shape(), step->shape);
  }
  run(last, seed_of(y, options), options.keep);
  commit();
  if (!options.keep) restart();
}

/// Moves the leaves' adjoints to their gradients: all of them, since nothing here can throw.
void Tape::commit() noexcept {
  for (Step* step : leaves_) {
    Array*& grad = step->leaf()->cell().grad;
    if (step->adjoint == nullptr) continue;
    if (grad == nullptr) {
      grad = std::exchange(step->adjoint, nullptr);
    } else {
      add_in_place(*grad, *step->adjoint);
      pool_delete(std::exchange(step->adjoint, nullptr));
    }
  }
}

std::vector<Step*> Tape::sources_of(const Tensor& x) {
  require(x.requires_grad(), "gradient", "each x must require grad", x.shape());
  const Cell& cell = x.cell();
  if (!cell.leaf) {
    require(cell.tape == id_, "gradient", "each x must be a leaf or on this tape", x.shape());
    return {cell.step};
  }
  std::vector<Step*> sources;  // more than one where another tape used the leaf in between
  for (Step* step : leaves_) {
    if (step->leaf()->same_as(x)) sources.push_back(step);
  }
  return sources;
}

/// Marks the steps between the sources and the end as wanted, and no others.
void Tape::want_only(const std::vector<std::vector<Step*>>& sources) {
  for (Step* step : steps_) step->wanted = false;
  for (const auto& steps : sources) {
    for (Step* step : steps) step->wanted = step->retained = true;
  }
  std::vector<OperandInfo> operands;
  for (Step* step : steps_) {
    operands.clear();
    step->describe(operands);
    step->runs = std::any_of(operands.begin(), operands.end(), [](const OperandInfo& operand) {
      return operand.source != nullptr && operand.source->wanted;
    });
    step->wanted |= step->runs;
  }
}

/// Undoes want_only, and drops adjoints that a pass left behind.
void Tape::want_all() noexcept {
  for (Step* step : steps_) {
    if (step == nullptr) continue;
    pool_delete(std::exchange(step->adjoint, nullptr));
    step->wanted = step->runs = true;
    step->retained = step->leaf() != nullptr;
  }
}

std::vector<Tensor> Tape::gradient(const Tensor& y, const std::vector<Tensor>& xs, const BackwardOptions& options) {
  Step* last = last_step(y, "gradient", options);
  std::vector<std::vector<Step*>> sources;
  for (const Tensor& x : xs) sources.push_back(sources_of(x));
  const Tensor seed = seed_of(y, options);
  const bool keep = options.keep || options.create_graph;
  std::vector<Tensor> recorded;
  std::vector<Tensor> result;
  try {
    want_only(sources);
    if (options.create_graph) {
      recorded = run_recorded(last, seed);
    } else if (last->wanted) {
      run(last, seed, keep);
    }
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const auto twin = std::find_if(xs.begin(), xs.end(), [&](const Tensor& x) { return x.same_as(xs[i]); });
      const auto first = static_cast<std::size_t>(twin - xs.begin());
      if (first < i) {  // its gradient has been moved away
        result.push_back(options.create_graph ? result[first] : Tensor(Array(result[first].value())));
        continue;
      }
      Tensor sum;
      for (Step* step : sources[i]) {
        Tensor term;
        if (options.create_graph) {
          if (step->index < recorded.size()) term = recorded[step->index];
        } else if (step->adjoint != nullptr) {
          term = Tensor(std::move(*step->adjoint));
        }
        if (term.defined()) sum = sum.defined() ? sum + term : term;
      }
      result.push_back(sum.defined() ? sum : Tensor(Array(xs[i].shape(), Real(0))));
    }
  } catch (...) {
    want_all();
    if (!keep) restart();
    throw;
  }
  want_all();
  if (!keep) restart();
  return result;
}

std::vector<Tensor> Tape::run_recorded(Step* last, const Tensor& seed) {
  const Busy busy(busy_);
  const NamedScope name("backward");
  std::vector<Tensor> gradients(last->index + std::size_t{1});
  gradients[last->index] = seed;
  for (std::size_t i = gradients.size(); i-- > 0;) {
    Step* step = steps_[i];
    if (!gradients[i].defined() || !step->runs) continue;
    const Tensor dy = gradients[i];
    running = step->name;
    step->backward(dy, gradients);
    if (!step->retained) gradients[i] = Tensor();
  }
  return gradients;
}

}  // namespace TAPEGRAD
