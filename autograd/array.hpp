/// Real, Array, Shape and the memory pool: what everything above is made of.
///
/// This is the only file that names xtensor's headers; both the flat layout (0.24, 0.25) and the foldered one (0.26 and
/// newer) are known here and nowhere else.
#pragma once

// g++ 12 with AVX-512 reports variables inside <immintrin.h> as maybe uninitialised; they are not. Including it first,
// with that one warning off, silences those reports and no others.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xarray.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#else
#include <xtensor/xarray.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#endif

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

// Programs are built with Real = float, gradient checks with Real = double. The two builds live in distinct inline
// namespaces, so that mixing their object files is a link error instead of a wrong number.
#ifdef TAPEGRAD_DOUBLE
#define TAPEGRAD tapegrad::inline float64
#else
#define TAPEGRAD tapegrad::inline float32
#endif

namespace TAPEGRAD {

#ifdef TAPEGRAD_DOUBLE
using Real = double;
#else
using Real = float;
#endif

/// Memory from this thread's pool: `bytes` bytes, aligned to 64. Throws std::bad_alloc when the system has no more.
void* pool_allocate(std::size_t bytes);

/// Returns a block of `bytes` bytes to this thread's pool, whichever thread took it; to the system where the pool would
/// hold more than this thread has taken.
void pool_deallocate(void* block, std::size_t bytes) noexcept;

/// Gives the blocks that this thread's pool holds, but nobody uses, back to the system.
void release_pooled_memory() noexcept;

/// Bytes that the pools of all threads have taken from the system and still hold, in use or not. 0 under
/// AddressSanitizer, where the pool is compiled out so that every block is watched.
std::size_t pooled_bytes() noexcept;

/// Makes and destroys single objects in the pool's memory.
template <class T, class... Args>
T* pool_new(Args&&... args) {
  void* block = pool_allocate(sizeof(T));
  try {
    return new (block) T(std::forward<Args>(args)...);
  } catch (...) {
    pool_deallocate(block, sizeof(T));
    throw;
  }
}
template <class T>
void pool_delete(T* object) noexcept {
  if (object == nullptr) return;
  object->~T();
  pool_deallocate(object, sizeof(T));
}

/// Standard allocator over the pool. Arrays made with it start on a 64-byte line, whatever -march the user compiles
/// with.
template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) noexcept {}
  T* allocate(std::size_t count) {
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(pool_allocate(count * sizeof(T)));
  }
  void deallocate(T* block, std::size_t count) noexcept { pool_deallocate(block, count * sizeof(T)); }
  template <class U>
  bool operator==(const PoolAllocator<U>&) const noexcept {
    return true;
  }
};

/// Vector whose memory comes from the pool: a warm training step then asks the system for nothing.
template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;

/// An owning, contiguous, row-major array of Real: the only form in which values and gradients exist.
using Array = xt::xarray<Real, xt::layout_type::row_major, PoolAllocator<Real>>;

/// The extents of an array, outermost axis first; empty for a scalar.
using Shape = Array::shape_type;

/// Throws the Error that an array of that shape would be too large.
[[noreturn]] void refuse_size(const Shape& shape);

/// Product of the extents: 1 for a scalar. Refuses more elements than memory could hold.
inline std::size_t element_count(const Shape& shape) {
  std::size_t count = 1;
  for (std::size_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) refuse_size(shape);
  }
  if (count > PTRDIFF_MAX / sizeof(double)) refuse_size(shape);
  return count;
}

/// An array of that shape with uninitialised elements.
inline Array empty_array(const Shape& shape) {
  element_count(shape);
  return Array::from_shape(shape);
}

/// A Holder (an Array, or something made from one) in pooled memory that holds the expression's value. A scalar is put
/// there without xtensor's assignment machinery, which costs more than a scalar op.
template <class Holder, class E>
Holder* evaluate(const E& expression) {
  if (expression.dimension() != 0) return pool_new<Holder>(expression);
  const Real number = static_cast<Real>(expression());
  Holder* holder = pool_new<Holder>();
  if constexpr (std::is_same_v<Holder, Array>) {
    holder->data()[0] = number;
  } else {
    holder->value.data()[0] = number;
  }
  return holder;
}

}  // namespace TAPEGRAD
