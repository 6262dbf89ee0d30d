// What every program shares: the command line, the exit codes, the progress line.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "examples/support/files.hpp"

namespace examples {

/// Options that every program takes.
struct Common {
  std::uint64_t seed = 0;
  std::string out = "out";
  bool quick = false;
  bool quiet = false;
  const CLI::App* command_line = nullptr;  ///< tells what was given, where defaults depend on other options
};

/// A program's main. Adds --seed, --out, --quick and --quiet to the command line, lets `options` add the program's own,
/// and runs `job`. Returns the exit code: 0 done or --help; 2 bad usage or BadInput; 1 any other exception. A failure
/// is one line on stderr, `NAME: message`. `defaults` are the common options' defaults.
int run(int argc, const char* const* argv, const std::string& name, const std::string& about,
        const std::function<void(CLI::App&)>& options, const std::function<void(const Common&)>& job,
        const Common& defaults = {});

/// Adds an option that is a file's name, which must not be empty.
void add_file(CLI::App& app, const std::string& option, std::string& file, const std::string& help);

/// For an option that is a number: what is wrong with it, or nothing. CLI11 takes 010 for octal, and 0x10 for 16.
std::string decimal(const std::string& number);

/// A decimal number of that range, and not NaN.
CLI::Validator within(double low, double high);

/// Adds an option that is a number of that range.
CLI::Option* add_number(CLI::App& app, const std::string& option, auto& number, double low, double high,
                        const std::string& help) {
  return app.add_option(option, number, help)->check(within(low, high))->type_name("N");
}

/// What is known of a training's step; the line shows nothing else.
struct Step {
  std::optional<double> loss = {}, learning_rate = {};
  std::size_t tokens = 0;  ///< that it learnt from: the speed is in tokens/s, or without them in steps/s
};

/// How far a long job is: on a terminal one live line on stderr (step, loss, learning rate, speed, time left), else a
/// plain line on stderr every 5 seconds, or nothing at all when `silent`.
class Progress {
 public:
  /// `done` of the `total` steps were before the program started.
  Progress(std::string what, std::size_t total, bool silent = false, std::size_t done = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `step` of `total` steps are done. To be called after every step that has tokens.
  void update(std::size_t step, const Step& known = {});

  /// Prints `text` as a line of its own on stdout, above the live line; nothing when `silent`.
  void print(const std::string& text);

  /// Removes the live line; the destructor does too.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  std::size_t total_;
  bool silent_;
  std::size_t done_;
  double tokens_ = 0;
  bool live_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

/// While there is one, the first SIGINT (Ctrl-C) or SIGTERM is noted and does nothing else, so that a job can end in
/// order; the second one ends the program at once.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool came() const;
};

}  // namespace examples
