/// Schedules of the learning rate.
///
///   const optim::Schedule schedule = optim::schedule::sequence({{optim::schedule::warmup(100), 100},
///                                                               {optim::schedule::cosine(900), 900}});
///   for (std::int64_t step = 0; step < 1000; ++step) {
///     optimizer.scale_learning_rates(schedule(step));
///     ...
///     optimizer.step();
///   }
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograd/require.hpp"

namespace TAPEGRAD::optim {

/// The factor of the learning rate at a step, counted from 0. A function of the step's number alone: asking changes
/// nothing, and the number is all that a checkpoint has to keep. A user's own function of it is a schedule too.
using Schedule = std::function<double(std::int64_t step)>;

/// Each refuses, when it is made, numbers that make no sense, and, when it is asked, a step below 0.
namespace schedule {

/// gamma^floor(step / size); PyTorch's StepLR.
Schedule step(std::int64_t size, double gamma);

/// gamma^(how many milestones are at most step); PyTorch's MultiStepLR.
Schedule multistep(std::vector<std::int64_t> milestones, double gamma);

/// gamma^step; PyTorch's ExponentialLR.
Schedule exponential(double gamma);

/// From 1 at step 0 along half a cosine to `lowest` at step `steps`, where it stays; PyTorch's CosineAnnealingLR with
/// eta_min = lowest times the rate, which would rise again. (Loshchilov and Hutter, 2017)
Schedule cosine(std::int64_t steps, double lowest = 0);

/// From `first` at step 0 on a line to `last` at step `steps`, where it stays; PyTorch's LinearLR.
Schedule linear(double first, double last, std::int64_t steps);

/// Linear warm-up: (step + 1) / steps, at most 1. No step is wasted on a rate of 0.
Schedule warmup(std::int64_t steps);

/// The Transformer paper's (Vaswani et al., 2017, section 5.3), for a learning rate of 1; with s = step + 1,
/// width^-0.5 min(s^-0.5, s warmup_steps^-1.5).
Schedule transformer(std::int64_t width, std::int64_t warmup_steps);

/// One after the other, each for so many steps and counting its steps from 0; the last one goes on. PyTorch's
/// SequentialLR.
struct Part {
  Schedule schedule;
  std::int64_t steps;
};
Schedule sequence(std::vector<Part> parts);

/// All at once: the factors multiplied. PyTorch's ChainedScheduler.
Schedule product(std::vector<Schedule> factors);

}  // namespace schedule
}  // namespace TAPEGRAD::optim
