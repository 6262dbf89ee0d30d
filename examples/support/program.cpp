#include "examples/support/program.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>

namespace examples {
namespace {

int fail(int code, const std::string& name, std::string message) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::cout.flush();
  std::cerr << name << ": " << message << std::endl;
  return code;
}

// CLI11's own conversion takes -1, or a number too large, for the greatest one.
std::string whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error == std::errc() && end == last) return decimal(text);
  return "a whole number from 0 to 2^64 - 1 is needed; got '" + text + "'";
}

std::string rounded(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

std::string clock_time(double seconds) {
  const long s = std::lround(std::min(seconds, 359999.0));
  char text[32];
  if (s >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  }
  return text;
}

// A second signal finds the system's own action again (SA_RESETHAND).
volatile std::sig_atomic_t interrupted = 0;
void note_interrupt(int) { interrupted = 1; }

}  // namespace

int run(int argc, const char* const* argv, const std::string& name, const std::string& about,
        const std::function<void(CLI::App&)>& options, const std::function<void(const Common&)>& job,
        const Common& defaults) {
  std::signal(SIGXFSZ, SIG_IGN);  // so that a file too large is an error that is told
  try {
    Common common = defaults;
    CLI::App app(about, name);
    app.add_option("--seed", common.seed, "seed of all random numbers")->check(whole_number, "")->capture_default_str();
    app.add_option("--out", common.out, "folder for pictures and tables")->type_name("DIR")->capture_default_str();
    app.add_flag("--quick", common.quick, "less work: shows that everything runs");
    app.add_flag("--quiet", common.quiet, "no lines that tell the progress");
    options(app);
    common.command_line = &app;
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      std::cout << app.help();
      return std::cout.flush() ? 0 : fail(1, name, "cannot write to the standard output");
    } catch (const CLI::ParseError& error) {
      return fail(2, name, std::string(error.what()) + " (--help shows the options)");
    }
    job(common);
    if (!std::cout.flush()) return fail(1, name, "cannot write to the standard output");
    return 0;
  } catch (const BadInput& error) {
    return fail(2, name, error.what());
  } catch (const std::bad_alloc&) {
    return fail(1, name, "out of memory");
  } catch (const std::exception& error) {
    return fail(1, name, error.what());
  }
}

void add_file(CLI::App& app, const std::string& option, std::string& file, const std::string& help) {
  const auto not_empty = [](const std::string& name) { return name.empty() ? "a file's name is empty" : ""; };
  app.add_option(option, file, help)->check(not_empty, "")->type_name("FILE");
}

std::string decimal(const std::string& number) {
  const std::size_t first = number.find_first_not_of(" \t+-");
  if (first == number.npos || number[first] != '0' || first + 1 == number.size() || number[first + 1] == '.') return "";
  return "a decimal number that doesn't begin with 0 is needed; got '" + number + "'";
}

CLI::Validator within(double low, double high) {
  const std::string range = rounded(low) + " to " + rounded(high);
  return CLI::Validator(
      [=](const std::string& given) {
        double number = 0;
        const bool is_number = CLI::detail::lexical_cast(given, number);
        if (is_number && number >= low && number <= high) return decimal(given);
        return "a number from " + range + " is needed; got '" + given + "'";
      },
      range);
}

Progress::Progress(std::string what, std::size_t total, bool silent, std::size_t done)
    : what_(std::move(what)), total_(total), silent_(silent), done_(done) {
  const char* terminal = std::getenv("TERM");
  live_ = isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
  next_ = live_ ? start_ : start_ + std::chrono::seconds(5);
}

Progress::~Progress() { finish(); }

void Progress::update(std::size_t step, const Step& known) {
  tokens_ += static_cast<double>(known.tokens);
  const Clock::time_point now = Clock::now();
  if (silent_ || now < next_) return;
  next_ = now + (live_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000));
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double speed = static_cast<double>(step - done_) / std::max(seconds, 1e-9);
  char line[200], shown_loss[32] = "", shown_rate[32] = "", shown_speed[32] = "";
  if (known.loss) std::snprintf(shown_loss, sizeof shown_loss, "  loss %.6g", *known.loss);
  if (known.learning_rate) std::snprintf(shown_rate, sizeof shown_rate, "  rate %.3g", *known.learning_rate);
  if (tokens_ > 0) {
    std::snprintf(shown_speed, sizeof shown_speed, "  %.0f tokens/s", tokens_ / std::max(seconds, 1e-9));
  } else {
    std::snprintf(shown_speed, sizeof shown_speed, "  %.3g/s", speed);
  }
  std::snprintf(line, sizeof line, "%s %zu/%zu%s%s%s", what_.c_str(), step, total_, shown_loss, shown_rate,
                shown_speed);
  std::string text = line;
  if (step > done_ && step <= total_) {
    text += "  " + clock_time(static_cast<double>(total_ - step) / speed) + " left";
  }
  // A longer line would wrap, and the next one could not overwrite it.
  if (live_) text.resize(std::min<std::size_t>(text.size(), 79));
  std::cerr << (live_ ? "\r\033[K" : "") << text << (live_ ? "" : "\n") << std::flush;
  shown_ = live_;
}

void Progress::print(const std::string& text) {
  if (silent_) return;
  finish();
  std::cout << text << '\n';
  // The live line goes to another stream: without a flush it could overtake the text.
  if (live_) std::cout.flush();
}

void Progress::finish() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
  shown_ = false;
}

Interrupt::Interrupt() {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool Interrupt::came() const { return interrupted != 0; }

}  // namespace examples
