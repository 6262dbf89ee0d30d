#include "tests/allocations.hpp"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "tests/catch.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED_BY_A_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WATCHED_BY_A_SANITIZER
#endif
#endif

namespace {

thread_local std::size_t requests = 0;  // of operator new
thread_local std::size_t mallocs = 0;
thread_local std::size_t first_failure = SIZE_MAX;
thread_local std::size_t last_failure = SIZE_MAX;
thread_local bool failed = false;

void* request(std::size_t bytes, std::size_t alignment) {
  const std::size_t number = requests++;
  if (number >= first_failure && number < last_failure) {
    failed = true;
    throw std::bad_alloc();
  }
  if (bytes > std::size_t{1} << 39) throw std::bad_alloc();  // AddressSanitizer's malloc would end the program
  if (bytes == 0) bytes = 1;
  void* block = alignment <= alignof(std::max_align_t)
                    ? std::malloc(bytes)
                    : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void* request_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  try {
    return request(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Not inlined: g++ would see a block of operator new that free takes, and warn.
[[gnu::noinline]] void give_back(void* block) noexcept { std::free(block); }

}  // namespace

void* operator new(std::size_t bytes) { return request(bytes, 1); }
void* operator new[](std::size_t bytes) { return request(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t line) { return request(bytes, static_cast<std::size_t>(line)); }
void* operator new[](std::size_t bytes, std::align_val_t line) {
  return request(bytes, static_cast<std::size_t>(line));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return request_or_null(bytes, 1); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return request_or_null(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t line, const std::nothrow_t&) noexcept {
  return request_or_null(bytes, static_cast<std::size_t>(line));
}
void* operator new[](std::size_t bytes, std::align_val_t line, const std::nothrow_t&) noexcept {
  return request_or_null(bytes, static_cast<std::size_t>(line));
}
void operator delete(void* block) noexcept { give_back(block); }
void operator delete[](void* block) noexcept { give_back(block); }
void operator delete(void* block, std::size_t) noexcept { give_back(block); }
void operator delete[](void* block, std::size_t) noexcept { give_back(block); }
void operator delete(void* block, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void* block, std::align_val_t) noexcept { give_back(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { give_back(block); }

#if defined(__GLIBC__) && !defined(WATCHED_BY_A_SANITIZER)
// glibc lets a program put its own malloc in front of the library's.
extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void* malloc(std::size_t bytes) {
  ++mallocs;
  return __libc_malloc(bytes);
}
#endif

namespace allocations {

std::size_t count() { return requests + mallocs; }

Failing::Failing(std::size_t n, std::size_t times) {
  failed = false;
  first_failure = requests + n;
  last_failure = times > SIZE_MAX - first_failure ? SIZE_MAX : first_failure + times;
}

Failing::~Failing() { first_failure = last_failure = SIZE_MAX; }

bool Failing::happened() const { return failed; }

}  // namespace allocations

TEST_CASE("allocations are counted, and fail when told", "[allocations]") {
  const std::size_t before = allocations::count();
  auto one = std::make_unique<int>(1);
  CHECK(allocations::count() > before);
  bool threw = false;
  {
    const allocations::Failing failing(1);
    one = std::make_unique<int>(2);
    try {
      one = std::make_unique<int>(3);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
  }
  CHECK(threw);
  CHECK(*one == 2);
}
