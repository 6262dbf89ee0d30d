// Our side of the benchmark: training steps and single ops, each timed over windows of repeated calls.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>

#include "benchmarks/timing.hpp"

using namespace benchmarks;

namespace {

std::optional<Workload> find(const std::vector<Workload>& table, const std::string& name) {
  for (const Workload& workload : table) {
    if (workload.name == name) return workload;
  }
  return sized_workload(name);
}

/// A time is worth nothing when what was timed went wrong.
bool is_right(const Workload& workload, const Times& times) {
  for (const tapegrad::Real number : times.last.value()) {
    if (!std::isfinite(number)) return false;
  }
  return !workload.trains || times.last.item() < times.first.item();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Times tapegrad's benchmark workloads in float32; one line each."};
  std::vector<std::string> names;
  int threads = 1;
  int windows = 7;
  double seconds = 0.2;
  bool json = false, list = false, bandwidth = false;
  app.add_option(
      "workloads", names,
      "names of workloads, all when none is given; or, of any size, attention:B,T,W,H (batch, length, width, "
      "heads), gpt:B,T,L,H,W (L layers), ops:N");
  app.add_option("--threads", threads, "number of threads")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--windows", windows, "windows, of which the least is reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "length of a window in seconds")
      ->check(CLI::Range(0.001, 60.0))
      ->capture_default_str();
  app.add_flag("--json", json,
               "one JSON object a line: workload, threads, s (seconds of one call), median, cpu (the processor's "
               "seconds), mib (MiB by which "
               "memory grew at most; of the first workload only)");
  app.add_flag("--bandwidth", bandwidth, "the workloads that only move memory, with GB/s, beside a plain copy");
  app.add_flag("--list", list, "list the workloads and stop");
  const std::vector<Workload>* table = nullptr;
  try {
    app.parse(argc, argv);
    table = bandwidth ? &bandwidth_workloads() : &workloads();
    if (names.empty()) {
      for (const Workload& workload : *table) names.push_back(workload.name);
    }
    for (const std::string& name : names) {
      if (!find(*table, name)) throw CLI::ValidationError(name, "there is no such workload; see --list");
    }
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "bench_train: %s\n", error.what());
    return 2;
  }
  if (list) {
    for (const Workload& workload : *table) std::printf("%-21s %s\n", workload.name.c_str(), workload.about.c_str());
    return 0;
  }
  tapegrad::set_threads(threads);
  for (const std::string& name : names) {
    const Workload workload = *find(*table, name);
    Times times;
    try {
      times = time_call(workload.make(), windows, seconds);
    } catch (const tapegrad::Error& error) {
      std::fprintf(stderr, "bench_train: %s: %s\n", name.c_str(), error.what());
      return 2;
    }
    if (!is_right(workload, times)) {
      std::fprintf(stderr, "bench_train: %s: the result is not finite, or the loss did not fall\n", name.c_str());
      return 1;
    }
    const double rate = workload.bytes / times.least * 1e-9;
    if (json) {
      std::printf("{\"workload\": \"%s\", \"threads\": %d, \"s\": %.9g, \"median\": %.9g, \"cpu\": %.9g, \"mib\": %.4g",
                  name.c_str(), threads, times.least, times.median, times.cpu, times.mib);
      if (bandwidth) std::printf(", \"gb_s\": %.4g", rate);
      std::printf("}\n");
    } else {
      std::printf("%-21s %12.3f us, median %12.3f us, %8.1f MiB", name.c_str(), times.least * 1e6, times.median * 1e6,
                  times.mib);
      if (bandwidth) std::printf(" %8.2f GB/s", rate);
      std::printf("\n");
    }
    std::fflush(stdout);
  }
}
