/// How a call is timed, the same for ours and for the rivals.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "benchmarks/workloads.hpp"

namespace benchmarks {

struct Times {
  double least, median;  // of the windows' means, in seconds
  tapegrad::Tensor first, last;
};

/// Seconds of one call: means over `windows` windows of about `seconds` each, or of one call where that takes longer,
/// after a warm-up of half a window and at least 2 calls.
inline Times time_call(const Call& call, int windows, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Times times;
  times.first = call();
  int calls = 0;
  const auto warm_up = Clock::now();
  do times.last = call(), ++calls;
  while (since(warm_up) < seconds / 2);
  const int per_window = std::max(1, static_cast<int>(calls * seconds / since(warm_up)));
  std::vector<double> means;
  for (int window = 0; window < windows; ++window) {
    const auto start = Clock::now();
    for (int i = 0; i < per_window; ++i) times.last = call();
    means.push_back(since(start) / per_window);
  }
  std::sort(means.begin(), means.end());
  times.least = means.front();
  times.median = means[means.size() / 2];
  return times;
}

}  // namespace benchmarks
