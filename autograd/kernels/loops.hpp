/// Loops over two arrays at once, along any number of axes.
#pragma once

#include "autograd/array.hpp"

namespace TAPEGRAD {

/// An axis to walk, and how far one step along it moves in each of the two arrays.
struct Loop {
  std::size_t extent;
  std::size_t a;
  std::size_t b;
};

/// f(offset in a, offset in b) for every position along the loops, the last one fastest.
template <class F>
void walk(const PoolVector<Loop>& loops, const F& f, std::size_t depth = 0, std::size_t a = 0, std::size_t b = 0) {
  if (depth == loops.size()) return f(a, b);
  const Loop& loop = loops[depth];
  for (std::size_t i = 0; i < loop.extent; ++i) walk(loops, f, depth + 1, a + i * loop.a, b + i * loop.b);
}

}  // namespace TAPEGRAD
