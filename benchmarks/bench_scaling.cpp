// What training on several ranks costs: run by mpirun, one thread for each rank. Prints one JSON object a line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "benchmarks/language_model.hpp"
#include "distributed/data_parallel.hpp"

using namespace benchmarks;

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The longest that any rank took.
double slowest(const Ranks& ranks, double seconds) {
  const std::vector<double> all = ranks.gather(seconds);
  return *std::max_element(all.begin(), all.end());
}

/// gpt_mid's training step with its batch of 8 rows shared among the ranks: the least of several, its backward pass,
/// and the wait for the sums after it. Beside it the processor's seconds without that wait, which a busy machine
/// disturbs least.
void time_step(Ranks& ranks, int times) {
  LanguageModelState state(kMiddle);
  const Share mine = ranks.share(kMiddle.batch);
  const auto part = [&](const Index& all) {
    Index some(Shape{mine.size(), kMiddle.length});
    std::copy_n(all.data() + mine.begin * kMiddle.length, some.size(), some.data());
    return some;
  };
  const Index tokens = part(state.tokens), next = part(state.next);
  const auto count = static_cast<Real>(kMiddle.batch * kMiddle.length);
  distributed::GradientSum gradients(ranks, state.net);
  double step = INFINITY, cpu = INFINITY, backward = 0, wait = 0, first = 0, last = 0;
  for (int i = 0; i < times + 2; ++i) {  // the first two warm up
    (void)ranks.gather(0);               // all begin together
    const auto start = Clock::now();
    std::clock_t used = std::clock();
    Tape tape;
    const Tensor loss = cross_entropy(state.net(tokens), next, {.reduction = Reduction::sum}) / count;
    const double forward = since(start);
    tape.backward(loss);
    const double computed = since(start);
    used -= std::clock();
    last = gradients.finish(loss.item());
    used += std::clock();
    const double summed = since(start);
    (void)optim::clip_grad_norm(state.parameters, 1);
    state.optimizer.step();
    state.optimizer.zero_grad();
    const auto computing = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC;
    const double taken = slowest(ranks, since(start)), busiest = slowest(ranks, computing);
    if (i == 0) first = last;
    if (i >= 2) cpu = std::min(cpu, busiest);
    if (i < 2 || taken >= step) continue;
    step = taken;
    backward = computed - forward;
    wait = summed - computed;
  }
  if (!(last < first)) throw std::runtime_error("the loss did not fall");
  if (!ranks.first()) return;
  std::printf(
      "{\"ranks\": %d, \"step_s\": %.6g, \"cpu_s\": %.6g, \"backward_s\": %.6g, \"wait_s\": %.6g, \"parameters\": "
      "%zu}\n",
      ranks.size(), step, cpu, backward, wait, state.net.parameter_count());
}

/// The sum of so many bytes over all ranks, alone: the least of several.
void time_sum(Ranks& ranks, std::size_t bytes, int times) {
  std::vector<float> numbers(bytes / sizeof(float), 1e-30f);
  double least = INFINITY;
  for (int i = 0; i < times + 1; ++i) {
    (void)ranks.gather(0);
    const auto start = Clock::now();
    ranks.start_sum(numbers.data(), numbers.size());
    ranks.wait();
    const double taken = slowest(ranks, since(start));
    if (i > 0) least = std::min(least, taken);
  }
  if (ranks.first()) std::printf("{\"ranks\": %d, \"bytes\": %zu, \"s\": %.6g}\n", ranks.size(), bytes, least);
}

}  // namespace

int main(int argc, char** argv) {
  Ranks ranks;
  CLI::App app{"Times a training step, and the sum of gradients, on the ranks that mpirun starts."};
  int times = 5;
  bool sums = false;
  app.add_flag("--sums", sums, "the sum of 4 KiB to 64 MiB over all ranks, instead of the step");
  app.add_option("--times", times, "of which the least is taken")->check(CLI::Range(1, 1000))->capture_default_str();
  try {
    app.parse(argc, argv);
    set_threads(1);
    for (std::size_t bytes = 4096; sums && bytes <= (std::size_t{1} << 26); bytes *= 4) time_sum(ranks, bytes, times);
    if (!sums) time_step(ranks, times);
  } catch (const CLI::CallForHelp& help) {
    return ranks.first() ? app.exit(help) : 0;
  } catch (const CLI::ParseError& error) {
    ranks.fail(std::string("bench_scaling: ").append(error.what()), 2);
  } catch (const std::exception& error) {
    ranks.fail(std::string("bench_scaling: ").append(error.what()));
  }
}
