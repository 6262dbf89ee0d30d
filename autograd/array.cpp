#include "autograd/array.hpp"

#include <atomic>
#include <bit>

#if defined(__SANITIZE_ADDRESS__)
#define TAPEGRAD_NO_POOL
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAPEGRAD_NO_POOL
#endif
#endif

namespace TAPEGRAD {

static constexpr std::align_val_t kLine{64};

#ifdef TAPEGRAD_NO_POOL

void* pool_allocate(std::size_t bytes) { return ::operator new(bytes, kLine); }
void pool_deallocate(void* block, std::size_t) noexcept { ::operator delete(block, kLine); }
void release_pooled_memory() noexcept {}
std::size_t pooled_bytes() noexcept { return 0; }

#else

namespace {

// Small blocks come in multiples of 64 bytes, larger ones in four sizes per power of two: at most a fifth is waste.
constexpr std::size_t kSmall = 512;
constexpr std::size_t kClasses = kSmall / 64 + 4 * 55;

struct SizeClass {
  std::size_t index;
  std::size_t bytes;
};

inline SizeClass size_class(std::size_t bytes) {
  if (bytes <= kSmall) {
    const std::size_t lines = (bytes + 63) / 64 + (bytes == 0);
    return {lines - 1, lines * 64};
  }
  const int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power + 1)
  const std::size_t step = (std::size_t{1} << power) / 4;
  const std::size_t quarter = (bytes - 1 - (std::size_t{1} << power)) / step;
  return {kSmall / 64 + 4 * static_cast<std::size_t>(power - 9) + quarter,
          (std::size_t{1} << power) + (quarter + 1) * step};
}

struct FreeBlock {
  FreeBlock* next;
};

// Trivially destructible, so that arrays that outlive the thread's other objects still find it.
//
// A thread holds at most as many bytes as it has itself taken from the system: one that only drops what another thread
// makes would gather blocks without end.
struct Pool {
  FreeBlock* free[kClasses];
  std::size_t bytes_of[kClasses];
  std::size_t held;   // bytes on the free lists
  std::size_t limit;  // bytes taken from the system, less those given back; 0 at the thread's end
  bool closed;
};
constinit thread_local Pool pool{};
constinit std::atomic<std::size_t> taken{0};  // by all threads: a block may be given back on another one

void release_free_blocks() noexcept {
  for (std::size_t index = 0; index < kClasses; ++index) {
    while (FreeBlock* block = pool.free[index]) {
      pool.free[index] = block->next;
      taken -= pool.bytes_of[index];
      ::operator delete(block, kLine);
    }
  }
  pool.limit -= std::exchange(pool.held, 0);
}

struct ReleaseAtThreadExit {
  ~ReleaseAtThreadExit() {
    release_free_blocks();
    pool.closed = true;
    pool.limit = 0;
  }
};

void* take_from_system(SizeClass wanted) {
  thread_local ReleaseAtThreadExit release_at_thread_exit;
  void* block;
  try {
    block = ::operator new(wanted.bytes, kLine);
  } catch (const std::bad_alloc&) {
    release_free_blocks();
    block = ::operator new(wanted.bytes, kLine);
  }
  taken += wanted.bytes;
  if (!pool.closed) pool.limit += wanted.bytes;
  return block;
}

}  // namespace

void* pool_allocate(std::size_t bytes) {
  if (bytes > PTRDIFF_MAX / 2) throw std::bad_alloc();
  const SizeClass wanted = size_class(bytes);
  if (FreeBlock* block = pool.free[wanted.index]) {
    pool.free[wanted.index] = block->next;
    pool.held -= wanted.bytes;
    return block;
  }
  return take_from_system(wanted);
}

void pool_deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  const SizeClass given = size_class(bytes);
  if (pool.held + given.bytes > pool.limit) {
    taken -= given.bytes;
    ::operator delete(block, kLine);
    return;
  }
  pool.held += given.bytes;
  pool.bytes_of[given.index] = given.bytes;
  pool.free[given.index] = new (block) FreeBlock{pool.free[given.index]};
}

void release_pooled_memory() noexcept { release_free_blocks(); }
std::size_t pooled_bytes() noexcept { return taken; }

#endif

}  // namespace TAPEGRAD
