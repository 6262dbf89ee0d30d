// Programs that mpirun may start on several ranks.
#pragma once

#include <iostream>
#include <new>
#include <streambuf>

#include "distributed/ranks.hpp"
#include "examples/support/program.hpp"

namespace examples {

/// As `run`, on all ranks: the first alone prints. An exception on any of them, in the job, ends them all with one line
/// and the exit code that `run` would return.
inline int run_on(const tapegrad::Ranks& ranks, int argc, const char* const* argv, const std::string& name,
                  const std::string& about, const std::function<void(CLI::App&)>& options,
                  const std::function<void(const Common&)>& job) {
  struct Nowhere : std::streambuf {
    int overflow(int c) override { return c == traits_type::eof() ? 0 : c; }
  };
  if (!ranks.first()) {
    static Nowhere* const nowhere = new Nowhere;  // for ever: the streams are flushed after statics have ended
    std::cout.rdbuf(nowhere);
    std::cerr.rdbuf(nowhere);
  }
  return run(argc, argv, name, about, options, [&](const Common& common) {
    if (ranks.size() == 1) return job(common);
    try {
      job(common);
    } catch (const BadInput& error) {
      ranks.fail(name + ": " + error.what(), 2);
    } catch (const std::bad_alloc&) {
      ranks.fail(name + ": out of memory");
    } catch (const std::exception& error) {
      ranks.fail(name + ": " + error.what());
    }
  });
}

}  // namespace examples
