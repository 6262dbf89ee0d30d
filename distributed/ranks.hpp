/// Ranks: the processes that one `mpirun` has started, and what they tell each other. The engine is MPI.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tapegrad {

/// What is one rank's of things that are counted: those from `begin` on, before `end`.
struct Share {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

/// All ranks of the job, as one of them sees them. One for a program, made first in main, and used by that thread only.
///
/// MPI is started only where mpirun has started the program (OMPI_COMM_WORLD_SIZE, PMI_SIZE or PMIX_RANK is set);
/// without it there is one rank, the first, and whatever is asked of the others costs nothing. So it is too where the
/// library was built without MPI, but that more than one rank is then refused, with exit code 2. An MPI that the
/// program has started itself is used, and not ended.
///
/// `share`, `rank`, `size` and `first` are answered at once. All other calls every rank must make, in the same order:
/// they wait for each other. When a rank is killed, mpirun ends the others.
class Ranks {
 public:
  Ranks();
  /// Waits for the other ranks. Left by an exception, it ends them: they might wait forever.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Whether this is rank 0, which prints and saves.
  bool first() const { return rank_ == 0; }

  /// This rank's of so many (rows of a batch, say): shares follow each other, and differ by one at most. Empty where
  /// there are fewer than ranks.
  Share share(std::size_t count) const {
    const auto part = [&](int rank) {
      const auto ranks = static_cast<std::size_t>(size_), before = static_cast<std::size_t>(rank);
      return count / ranks * before + std::min(before, count % ranks);
    };
    return {part(rank_), part(rank_ + 1)};
  }

  /// Gives everybody the bytes that the first has.
  void broadcast(void* bytes, std::size_t count) const;
  std::string broadcast(std::string text) const {
    std::size_t count = text.size();
    broadcast(&count, sizeof count);
    text.resize(count);
    broadcast(text.data(), count);
    return text;
  }

  /// The number of each rank, by ranks.
  std::vector<double> gather(double number) const;

  /// Begins to replace the numbers, on every rank, by their sums over all ranks; they must stay where they are until
  /// `wait`. Sums begun go on while the program computes, as far as it calls `progress` now and then.
  void start_sum(float* numbers, std::size_t count);
  void start_sum(double* numbers, std::size_t count);
  void progress();
  void wait();

  /// Ends the job with that exit code, after one line on stderr: the first rank's message, for when the same has
  /// happened to all, or, where the first has said nothing for a second, this one's with its number.
  [[noreturn]] void fail(const std::string& message, int code = 1) const;

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;  // null where there is one rank only
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace tapegrad
