#include "autograd/watch.hpp"

namespace TAPEGRAD {

static constinit thread_local Watcher* innermost = nullptr;

Watcher::Watcher() : next_(std::exchange(innermost, this)) {
  if (Tape* tape = Tape::open()) tape->watcher_ = this;
}

Watcher::~Watcher() {
  innermost = next_;
  Tape::replace_watcher(this, next_);
}

Watcher* Watcher::greet(const Tape& tape) {
  for (Watcher* w = innermost; w != nullptr; w = w->next_) w->opened(tape);
  return innermost;
}

void Tape::tell(const Step& step, const Tensor& y) const {
  for (Watcher* w = watcher_; w != nullptr; w = w->next_) w->recorded(*this, step, y);
}

void Tape::backward_watched(Step& step) const {
  for (Watcher* w = watcher_; w != nullptr; w = w->next_) w->before_rule(*this, step, *step.adjoint);
  step.backward(*step.adjoint);
  for (Watcher* w = watcher_; w != nullptr; w = w->next_) w->after_rule(*this, step, *step.adjoint);
}

void Tape::begin_name(const char* name) { names_.push_back({name, static_cast<std::uint32_t>(steps_.size())}); }

/// Ends the innermost name that has not ended.
void Tape::end_name() noexcept {
  for (std::size_t i = names_.size(); i-- > 0;) {
    if (names_[i].last != StepName::kOpen) continue;
    names_[i].last = static_cast<std::uint32_t>(steps_.size());
    return;
  }
}

}  // namespace TAPEGRAD
