#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace TAPEGRAD::optim::schedule {
namespace {

/// The factor as a schedule: asked with the step as a double, at least 0.
template <class Factor>
Schedule from_zero(Factor factor) {
  return [factor](std::int64_t step) -> double {
    require(step >= 0, "schedule", "the step must be at least 0", step);
    return factor(static_cast<double>(step));
  };
}

void require_positive(std::int64_t number, const char* what) {
  require(number > 0, "schedule", std::string(what) + " must be above 0", number);
}

void require_not_negative(double number, const char* what) {
  require(number >= 0 && std::isfinite(number), "schedule", std::string(what) + " must be at least 0 and finite",
          number);
}

}  // namespace

Schedule step(std::int64_t size, double gamma) {
  require_positive(size, "size");
  require_not_negative(gamma, "gamma");
  return from_zero([=](double t) { return std::pow(gamma, std::floor(t / static_cast<double>(size))); });
}

Schedule multistep(std::vector<std::int64_t> milestones, double gamma) {
  require_not_negative(gamma, "gamma");
  require(std::is_sorted(milestones.begin(), milestones.end()), "schedule", "milestones must rise");
  return from_zero([=](double t) {
    const auto passed = std::count_if(milestones.begin(), milestones.end(),
                                      [t](std::int64_t milestone) { return static_cast<double>(milestone) <= t; });
    return std::pow(gamma, static_cast<double>(passed));
  });
}

Schedule exponential(double gamma) {
  require_not_negative(gamma, "gamma");
  return from_zero([=](double t) { return std::pow(gamma, t); });
}

Schedule cosine(std::int64_t steps, double lowest) {
  require_positive(steps, "steps");
  require_not_negative(lowest, "lowest");
  return from_zero([=](double t) {
    const double done = std::min(t / static_cast<double>(steps), 1.0);
    return lowest + (1 - lowest) * (1 + std::cos(std::numbers::pi * done)) / 2;
  });
}

Schedule linear(double first, double last, std::int64_t steps) {
  require_positive(steps, "steps");
  require_not_negative(first, "first");
  require_not_negative(last, "last");
  return from_zero([=](double t) {
    const double done = std::min(t / static_cast<double>(steps), 1.0);
    return first + (last - first) * done;
  });
}

Schedule warmup(std::int64_t steps) {
  require_positive(steps, "steps");
  return from_zero([=](double t) { return std::min((t + 1) / static_cast<double>(steps), 1.0); });
}

Schedule transformer(std::int64_t width, std::int64_t warmup_steps) {
  require_positive(width, "width");
  require_positive(warmup_steps, "warmup_steps");
  const double scale = 1 / std::sqrt(static_cast<double>(width));
  const double slope = std::pow(static_cast<double>(warmup_steps), -1.5);
  return from_zero([=](double t) { return scale * std::min(1 / std::sqrt(t + 1), (t + 1) * slope); });
}

Schedule sequence(std::vector<Part> parts) {
  require(!parts.empty(), "schedule", "there must be a part");
  for (const Part& part : parts) {
    require(static_cast<bool>(part.schedule), "schedule", "a part must have a schedule");
    require_positive(part.steps, "a part's steps");
  }
  return [parts = std::move(parts)](std::int64_t step) -> double {
    require(step >= 0, "schedule", "the step must be at least 0", step);
    std::size_t i = 0;
    for (; i + 1 < parts.size() && step >= parts[i].steps; ++i) step -= parts[i].steps;
    return parts[i].schedule(step);
  };
}

Schedule product(std::vector<Schedule> factors) {
  for (const Schedule& factor : factors) {
    require(static_cast<bool>(factor), "schedule", "a factor must be a schedule");
  }
  return [factors = std::move(factors)](std::int64_t step) -> double {
    require(step >= 0, "schedule", "the step must be at least 0", step);
    double all = 1;
    for (const Schedule& factor : factors) all *= factor(step);
    return all;
  };
}

}  // namespace TAPEGRAD::optim::schedule
