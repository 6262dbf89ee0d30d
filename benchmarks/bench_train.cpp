// Our side of the benchmark: training steps and single ops, each timed over windows of repeated calls.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>

#include "tapegrad.hpp"

using namespace tapegrad;

namespace {

/// What is timed: one call does the work once, the state staying from call to call.
using Call = std::function<void()>;

/// The parametric Nadaraya-Watson regressor's training step: 50 points, leave-one-out, SGD with rate 0.5.
Call nw_step() {
  struct State {
    Rng rng{0};
    nn::NadarayaWatson model{49, rng};
    nn::MSELoss loss{Reduction::none};
    optim::SGD optimizer{model.parameters(), {.learning_rate = 0.5}};
    Tensor x, y, keys, values;
  };
  auto state = std::make_shared<State>();
  Rng& rng = state->rng;
  state->x = sort(Tensor(rng.uniform({50}, 0, 5)));
  state->y = sin(state->x) * 2 + pow(state->x, Real(0.8)) + Tensor(rng.normal({50}, 0, 0.5));
  state->keys = nn::leave_one_out(state->x);
  state->values = nn::leave_one_out(state->y);
  return [state] {
    state->optimizer.zero_grad();
    Tape tape;
    tape.backward(sum(state->loss(state->model(state->x, state->keys, state->values), state->y)));
    state->optimizer.step();
  };
}

/// A scalar through 500 times z * 0.999 + 0.001, then backward.
Call tiny_1000ops() {
  Parameter start(Tensor(1));
  return [start]() mutable {
    start.zero_grad();
    Tape tape;
    Tensor z = start;
    for (int i = 0; i < 500; ++i) z = z * Real(0.999) + Real(0.001);
    tape.backward(z);
  };
}

const std::map<std::string, std::function<Call()>> kWorkloads = {
    {"nw_step", nw_step},
    {"tiny_1000ops", tiny_1000ops},
};

/// Seconds of one call: the least mean over `windows` windows of about `seconds` each, after a warm-up.
double time_call(const Call& call, int windows, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  int calls = 0;
  const auto warm_up = Clock::now();
  while (since(warm_up) < seconds / 2 || calls < 3) call(), ++calls;
  const int per_window = std::max(1, static_cast<int>(calls * seconds / since(warm_up)));
  double least = std::numeric_limits<double>::infinity();
  for (int window = 0; window < windows; ++window) {
    const auto start = Clock::now();
    for (int i = 0; i < per_window; ++i) call();
    least = std::min(least, since(start) / per_window);
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Times tapegrad's benchmark workloads in float32; one line each."};
  std::vector<std::string> names;
  int threads = 1;
  int windows = 7;
  double seconds = 0.2;
  bool json = false;
  app.add_option("workloads", names, "names of workloads; all when none is given");
  app.add_option("--threads", threads, "number of threads")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--windows", windows, "windows, of which the least is reported")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", seconds, "length of a window in seconds")->check(CLI::Range(0.001, 60.0));
  app.add_flag("--json", json, "one JSON object a line: workload, threads, s (seconds of one call)");
  try {
    app.parse(argc, argv);
    if (names.empty()) {
      for (const auto& [name, make] : kWorkloads) names.push_back(name);
    }
    for (const std::string& name : names) {
      if (!kWorkloads.contains(name)) throw CLI::ValidationError(name, "there is no such workload");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  set_threads(threads);
  for (const std::string& name : names) {
    const double s = time_call(kWorkloads.at(name)(), windows, seconds);
    if (json) {
      std::printf("{\"workload\": \"%s\", \"threads\": %d, \"s\": %.9g}\n", name.c_str(), threads, s);
    } else {
      std::printf("%-16s %10.3f us\n", name.c_str(), s * 1e6);
    }
    std::fflush(stdout);
  }
}
