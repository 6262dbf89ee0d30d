#include "autograd/tape.hpp"

#include "autograd/kernels.hpp"
#include "autograd/ops.hpp"
#include "autograd/shapes.hpp"
#include "autograd/watch.hpp"

namespace TAPEGRAD {
namespace {

thread_local Scope* innermost = nullptr;
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

Tensor Tape::seed_of(const Tensor& y, const BackwardOptions& options) {
  return options.seed.defined() ? options.seed : Tensor(Array(y.shape(), Real(1)));
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

/// Undoes want_only, and drops adjoints that a pass left behind.
void Tape::want_all() noexcept {
  for (Step* step : steps_) {
    if (step == nullptr) continue;
    pool_delete(std::exchange(step->adjoint, nullptr));
    step->wanted = step->runs = true;
    step->retained = step->leaf() != nullptr;
  }
}

}  // namespace TAPEGRAD
