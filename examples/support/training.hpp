// Trainings that are saved and stopped at any step, and gone on with bit for bit; on one rank or on several, of which
// the first alone reads and writes files.
#pragma once

#include <filesystem>
#include <limits>

#include "autograd/ops.hpp"
#include "distributed/data_parallel.hpp"
#include "examples/support/checkpoint.hpp"
#include "examples/support/csv.hpp"
#include "examples/support/settings.hpp"
#include "nn/serialize.hpp"
#include "optim/clip.hpp"
#include "optim/optimizer.hpp"
#include "optim/schedule.hpp"

namespace examples {

/// Refuses, on all ranks alike, what they must have in common: a text by each name. Names the first that differs.
inline void require_same(const tapegrad::Ranks& ranks, const std::map<std::string, std::string>& texts) {
  for (const auto& [name, value] : texts) {
    // A double holds 53 bits.
    const auto numbers = ranks.gather(static_cast<double>(tapegrad::fingerprint(name + "=" + value) >> 11));
    for (std::size_t rank = 1; rank < numbers.size(); ++rank) {
      if (numbers[rank] == numbers[0]) continue;
      throw BadInput(name + text(": must be the same on all ranks; another one on rank %zu", rank));
    }
  }
}

// ---- files ----------------------------------------------------------------------------------------------------------

/// Where a training comes from, and goes to.
struct Files {
  std::string program;  // whose checkpoints they are
  std::string save, resume, load;
  std::size_t save_every = 0;  // 0: 20 times in all
  std::size_t stop_at = 0;     // 0: at the end

  void add_options(CLI::App& app) {
    program = app.get_name();
    const std::string kept = "the model and its training [the resumed one, or DIR/" + program + ".safetensors]";
    add_file(app, "--save", save, kept);
    add_file(app, "--resume", resume, "goes on with a saved training, to the end of its steps");
    add_file(app, "--load", load, "uses a saved model without training it further");
    add_number(app, "--save-every", save_every, 1, 10'000'000, "steps between saves [a twentieth of all]");
    add_number(app, "--stop-at", stop_at, 1, 10'000'000, "step to save after and to end, as by Ctrl-C");
  }

  /// Refuses what a model that is used without training has no use for: these options, and the program's `others`; and
  /// ranks that would not do the same.
  void check(const CLI::App& app, const tapegrad::Ranks& ranks, std::vector<std::string> others = {}) const {
    const auto given = [](const std::string& file) { return std::string(file.empty() ? "no" : "yes"); };
    require_same(ranks, {{"--load", given(load)}, {"--resume", given(resume)}, {"--stop-at", std::to_string(stop_at)}});
    if (app.count("--load") == 0) return;
    for (const char* option : {"--save", "--resume", "--save-every", "--stop-at"}) others.emplace_back(option);
    for (const std::string& option : others) {
      if (app.count(option) > 0) throw BadInput("--load excludes " + option);
    }
  }

  /// The checkpoint to begin with, or empty.
  const std::string& saved() const { return load.empty() ? resume : load; }

  /// Makes sure, before the work starts, that the output folder and `save` can be written, and that nothing which is
  /// written there (pictures and tables of its `own` names) is `data`, which is read, or a checkpoint.
  void prepare(const std::string& out, const std::string& data, const std::vector<std::string>& own,
               const tapegrad::Ranks& ranks) {
    if (!ranks.first()) return;
    prepare_output_folder(out);
    if (save.empty()) save = resume.empty() ? out + "/" + program + ".safetensors" : resume;
    prepare_save(save);
    require_kept({data}, {save, save + ".previous"});
    require_kept({data, saved(), save}, with_endings(out, own));
  }
};

/// Removes an earlier run's pictures and tables, which would stand beside this one's log.
inline void remove_old(const std::string& out, const std::vector<std::string>& names) {
  for (const std::string& file : with_endings(out, names)) {
    std::error_code none;
    std::filesystem::remove(file, none);
  }
}

// ---- checkpoints ----------------------------------------------------------------------------------------------------

/// What the checkpoint at `path` holds, with `settings` taken from it. Throws BadInput for one that is damaged, of
/// another program, of other settings than the command line's, or with numbers that are not finite or not of one
/// training.
inline tapegrad::State read_checkpoint(const Files& files, auto& settings, const CLI::App& app,
                                       const tapegrad::Ranks& ranks) {
  const std::string &path = files.saved(), &program = files.program;
  return reading(path, [&] {
    using tapegrad::require, tapegrad::in_quotes;
    tapegrad::State state = tapegrad::distributed::broadcast(
        ranks, ranks.first() ? tapegrad::nn::load_checkpoint(path) : tapegrad::State());
    require(state.texts["program"] == program, program, "the file must be one that " + program + " has saved");
    load_settings(settings, state.take("settings."), app, path);
    if (const std::string* name = find_not_finite(state)) {
      throw BadInput(path + ": all numbers must be finite, and not so in " + in_quotes(*name));
    }
    const tapegrad::Array* losses = state.find("log.loss");
    require(losses != nullptr && losses->dimension() == 1 && losses->size() <= settings.steps, program,
            "there must be a loss for each step so far, of " + std::to_string(settings.steps) + " at most");
    for (const auto& [name, count] : state.texts) {
      if (!name.starts_with("optimizer.") || !name.ends_with(".step")) continue;
      require(state.count(name) == losses->size(), program, "the optimizer must have done the steps that have a loss",
              count, losses->size());
    }
    if (files.stop_at > 0 && files.stop_at <= losses->size()) {
      throw BadInput(path + text(": is at step %zu, not before --stop-at %zu", losses->size(), files.stop_at));
    }
    return state;
  });
}

/// Refuses, before a net is made, settings that need more numbers than the checkpoint has: a small file must not take
/// much memory.
inline void require_parameters(const std::string& path, const tapegrad::State& state, std::size_t needed) {
  std::size_t found = 0;
  for (const auto& [name, array] : state.arrays) {
    if (!name.starts_with("optimizer.") && !name.starts_with("log.")) found += array.size();
  }
  if (found >= needed) return;
  throw BadInput(path + text(": has %zu numbers; a net of its settings has at least %zu", found, needed));
}

// ---- training -------------------------------------------------------------------------------------------------------

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

/// What the training of any net keeps: a program's own has the net and the optimizer too, advance() for a step, which
/// returns how many tokens it learnt from, and state().
class Training {
 public:
  std::size_t step() const { return losses.size(); }  ///< steps that are done
  std::size_t steps() const { return steps_; }
  bool done() const { return step() >= steps_; }
  double rate(std::size_t at) const { return learning_rate_ * factor(at); }

  std::vector<double> losses;    ///< of each step
  std::vector<double> measured;  ///< after each step, by the program; mostly not measured

  /// The log: a row for each step. What is measured gets a column if it has a name.
  void write_log(const std::string& path, const std::string& name) const {
    std::string table = "step,loss,learning_rate" + (name.empty() ? "" : "," + name) + "\n";
    for (std::size_t i = 0; i < step(); ++i) {
      table += std::to_string(i + 1) + ',' + csv_number(losses[i]) + ',' + csv_number(rate(i));
      if (!name.empty()) table += ',' + (std::isnan(measured[i]) ? "" : csv_number(measured[i]));
      table += '\n';
    }
    write_file(path, table);
  }

 protected:
  /// `fingerprint` is that of the data. Refuses ranks with other settings or data.
  Training(const auto& settings, const std::string& fingerprint, tapegrad::optim::Schedule schedule,
           tapegrad::Ranks& all_ranks)
      : rng(settings.seed),
        ranks(all_ranks),
        steps_(settings.steps),
        learning_rate_(settings.learning_rate),
        schedule_(std::move(schedule)) {
    std::map<std::string, std::string> common = {{"the data", fingerprint}};
    for (const auto& [name, value] : state_of_settings(settings).texts) common.emplace("--" + name, value);
    require_same(ranks, common);
  }

  /// One step down the loss, its gradient clipped. `part()` is this rank's part of it, called if it has rows of the
  /// batch: its terms over the number of all ranks' terms. With dropout, each rank draws its own numbers in it. Throws,
  /// on all ranks, and leaves all as it was, when loss or gradient are not finite.
  void learn(bool has_rows, double dropout, auto&& part, tapegrad::distributed::GradientSum& gradients,
             tapegrad::optim::Optimizer& optimizer) {
    std::optional<tapegrad::distributed::OwnNumbers> own;
    if (dropout > 0) own.emplace(ranks, rng);
    double loss = 0;
    if (has_rows) {
      tapegrad::Tape tape;
      const tapegrad::Tensor found = part();
      tape.backward(found);
      loss = found.item();
    }
    own.reset();
    try {
      loss = static_cast<tapegrad::Real>(gradients.finish(loss));  // as a checkpoint keeps it
      const double norm = tapegrad::optim::clip_grad_norm(optimizer.parameters(), 1);
      if (!std::isfinite(norm)) throw std::runtime_error(text("the norm of the gradient is %g", norm));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(text("step %zu: ", step() + 1) + error.what() + "; a smaller --learning-rate may help");
    }
    optimizer.scale_learning_rates(factor(step()));
    optimizer.step();
    optimizer.zero_grad();
    losses.push_back(loss);
    measured.push_back(kNotMeasured);
  }

  tapegrad::State state_of(const auto& settings, const tapegrad::nn::Module& net,
                           const tapegrad::optim::Optimizer& optimizer) const {
    tapegrad::State all = tapegrad::nn::state_of(net);
    all.add("settings.", state_of_settings(settings));
    all.add("optimizer.", optimizer.state());
    all.add("rng.", tapegrad::nn::state_of(rng));
    for (const auto& [name, numbers] : {std::pair("log.loss", &losses), {"log.measured", &measured}}) {
      tapegrad::Array array = tapegrad::empty_array({numbers->size()});
      std::transform(numbers->begin(), numbers->end(), array.data(), [](double x) { return tapegrad::Real(x); });
      all.arrays.emplace_back(name, std::move(array));
    }
    return all;
  }

  /// Goes on from what state_of gave, read from `path`. Throws BadInput for what doesn't fit.
  void load(tapegrad::State all, const std::string& path, tapegrad::nn::Module& net,
            tapegrad::optim::Optimizer& optimizer) {
    reading(path, [&] {
      const tapegrad::State log = all.take("log.");
      const tapegrad::Array *loss = log.find("loss"), *others = log.find("measured");
      tapegrad::require(loss != nullptr && others != nullptr && loss->shape() == others->shape(), "load",
                        "the log must have a loss and a measurement for each step");
      const bool finite = std::none_of(others->begin(), others->end(), [](auto x) { return std::isinf(x); });
      tapegrad::require(finite, "load", "the measurements must be finite");
      losses.assign(loss->begin(), loss->end());
      measured.assign(others->begin(), others->end());
      const tapegrad::State saved = all.take("optimizer.");
      for (const auto& [name, chosen] : optimizer.state().texts) {
        if (!name.starts_with("group.") || name.ends_with(".learning_rate")) continue;  // the schedule's
        tapegrad::require(saved.text(name) == chosen, "load",
                          "the optimizer must be that of the settings: " + tapegrad::in_quotes(name), saved.text(name),
                          chosen);
      }
      optimizer.load_state(saved);
      tapegrad::nn::load_state(rng, all.take("rng."));
      tapegrad::nn::load_state(net, all);
    });
  }

  tapegrad::Rng rng;  // the same on all ranks, but while part() draws

 public:
  tapegrad::Ranks& ranks;

 private:
  double factor(std::size_t at) const { return schedule_(static_cast<std::int64_t>(at)); }

  std::size_t steps_;
  double learning_rate_;
  tapegrad::optim::Schedule schedule_;
};

/// How often a checkpoint is saved, and a net's progress measured, in steps.
inline std::size_t interval(const Training& training) { return std::max<std::size_t>(1, training.steps() / 20); }

/// Trains until all steps are done or the user wants no more; saves the checkpoint, and the log in the output folder,
/// as often as asked for, and at the end. `after(progress)` follows each step, on the first rank. Returns whether all
/// are done.
bool train(auto& training, const Files& files, const Common& common, const std::string& log, const std::string& column,
           auto&& after) {
  const std::size_t save_every = files.save_every > 0 ? files.save_every : interval(training);
  const Interrupt interrupt;
  Progress progress("step", training.steps(), common.quiet, training.step());
  const auto save = [&] {
    tapegrad::State state = training.state();
    state.texts["program"] = files.program;
    if (const std::string* name = find_not_finite(state)) {
      throw std::runtime_error(text("step %zu: ", training.step()) + tapegrad::in_quotes(*name) +
                               " is not finite; a smaller --learning-rate may help");
    }
    tapegrad::nn::save_checkpoint(files.save, state);
    training.write_log(common.out + "/" + log, column);
  };
  if (training.step() == 0 && training.ranks.first()) keep_previous(files.save);
  if (training.done() && training.ranks.first()) save();  // for a --save elsewhere
  for (bool stops = training.done(); !stops;) {
    const std::size_t tokens = training.advance(), step = training.step();
    if (training.ranks.first()) after(progress);
    const std::vector<double> interrupts = training.ranks.gather(interrupt.came() ? 1 : 0);
    stops = training.done() || step == files.stop_at || std::count(interrupts.begin(), interrupts.end(), 1) > 0;
    if (training.ranks.first() && (stops || step % save_every == 0)) save();
    progress.update(step, {training.losses.back(), training.rate(step - 1), tokens});
  }
  return training.done();
}

/// `data`: the option and the file that the program needs again.
inline std::string stopped(const Training& training, const Files& files, const std::string& data) {
  return text("stopped after step %zu of %zu; to go on:", training.step(), training.steps()) + data + " --resume " +
         files.save;
}

}  // namespace examples
