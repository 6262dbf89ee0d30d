#pragma once
// Counts this thread's requests to the system for memory, and makes them fail. The global operator new is replaced for
// the whole test program.

#include <cstddef>
#include <cstdint>

namespace allocations {

/// How many requests this thread has made so far: operator new and, where it can be watched, malloc.
std::size_t count();

/// Makes operator new throw std::bad_alloc on this thread, from the n-th request on (0 is the next one), for `times`
/// requests. Ends at the end of its life.
class Failing {
 public:
  explicit Failing(std::size_t n, std::size_t times = SIZE_MAX);
  ~Failing();
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;

  /// Whether a request failed.
  bool happened() const;
};

}  // namespace allocations
