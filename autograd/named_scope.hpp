/// Names for parts of a tape.
#pragma once

#include "autograd/tape.hpp"

namespace TAPEGRAD {

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

}  // namespace TAPEGRAD
