/// How a call is measured, the same for ours and for the rivals.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <vector>

#include "benchmarks/workloads.hpp"

namespace benchmarks {

/// A line of Linux's /proc/self/status (VmRSS, VmHWM) in MiB; 0 elsewhere.
inline double status_mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::strtod(line.c_str() + key.size() + 1, nullptr) / 1024;
  }
  return 0;
}

struct Times {
  double least, median;  // of the windows' means, in seconds
  double cpu;            // the least, of the processor's seconds
  double mib;            // by which the peak was above what was resident before the first call
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
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew
  const double resident = status_mib("VmRSS");
  times.first = call();
  int calls = 0;
  const auto warm_up = Clock::now();
  do times.last = call(), ++calls;
  while (since(warm_up) < seconds / 2);
  const int per_window = std::max(1, static_cast<int>(calls * seconds / since(warm_up)));
  std::vector<double> means;
  times.cpu = std::numeric_limits<double>::infinity();
  for (int window = 0; window < windows; ++window) {
    const std::clock_t used = std::clock();
    const auto start = Clock::now();
    for (int i = 0; i < per_window; ++i) times.last = call();
    means.push_back(since(start) / per_window);
    times.cpu = std::min(times.cpu, static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC / per_window);
  }
  std::sort(means.begin(), means.end());
  times.least = means.front();
  times.median = means[means.size() / 2];
  times.mib = status_mib("VmHWM") - resident;
  return times;
}

}  // namespace benchmarks
