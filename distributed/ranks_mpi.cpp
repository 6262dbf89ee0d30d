#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "distributed/ranks.hpp"

// The C++ bindings, which are no longer part of MPI.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace tapegrad {

struct Ranks::Engine {
  MPI_Comm ranks = MPI_COMM_NULL;  // of our own, so that nobody else's messages come between
  std::vector<MPI_Request> sums;
  bool ends = false;                            // MPI is ended by us
  int exceptions = std::uncaught_exceptions();  // under way when this was made
};

namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;  // elements in a call, which counts by int

void start(const void* numbers, std::size_t count, MPI_Datatype type, MPI_Comm ranks, std::vector<MPI_Request>& sums,
           std::size_t bytes) {
  for (std::size_t at = 0; at < count; at += kMost) {
    void* from = const_cast<char*>(static_cast<const char*>(numbers)) + at * bytes;
    sums.push_back(MPI_REQUEST_NULL);
    MPI_Iallreduce(MPI_IN_PLACE, from, static_cast<int>(std::min(kMost, count - at)), type, MPI_SUM, ranks,
                   &sums.back());
  }
}

}  // namespace

Ranks::Ranks() {
  int running = 0;
  MPI_Initialized(&running);
  const bool launched = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr ||
                        std::getenv("PMIX_RANK") != nullptr;
  if (running == 0 && !launched) return;
  engine_ = std::make_unique<Engine>();
  if (running == 0) {
    MPI_Init(nullptr, nullptr);
    engine_->ends = true;
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &engine_->ranks);
  MPI_Comm_rank(engine_->ranks, &rank_);
  MPI_Comm_size(engine_->ranks, &size_);
}

Ranks::~Ranks() {
  if (engine_ == nullptr) return;
  if (std::uncaught_exceptions() > engine_->exceptions) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm_free(&engine_->ranks);
  if (engine_->ends) MPI_Finalize();
}

void Ranks::broadcast(void* bytes, std::size_t count) const {
  if (size_ == 1) return;
  for (std::size_t at = 0; at < count; at += kMost) {
    MPI_Bcast(static_cast<char*>(bytes) + at, static_cast<int>(std::min(kMost, count - at)), MPI_BYTE, 0,
              engine_->ranks);
  }
}

std::vector<double> Ranks::gather(double number) const {
  std::vector<double> all(static_cast<std::size_t>(size_), number);
  if (size_ > 1) MPI_Allgather(&number, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, engine_->ranks);
  return all;
}

void Ranks::start_sum(float* numbers, std::size_t count) {
  if (size_ > 1) start(numbers, count, MPI_FLOAT, engine_->ranks, engine_->sums, sizeof *numbers);
}

void Ranks::start_sum(double* numbers, std::size_t count) {
  if (size_ > 1) start(numbers, count, MPI_DOUBLE, engine_->ranks, engine_->sums, sizeof *numbers);
}

void Ranks::progress() {
  if (size_ == 1 || engine_->sums.empty()) return;
  int done = 0;
  MPI_Testall(static_cast<int>(engine_->sums.size()), engine_->sums.data(), &done, MPI_STATUSES_IGNORE);
  if (done != 0) engine_->sums.clear();
}

void Ranks::wait() {
  if (size_ == 1) return;
  MPI_Waitall(static_cast<int>(engine_->sums.size()), engine_->sums.data(), MPI_STATUSES_IGNORE);
  engine_->sums.clear();
}

void Ranks::fail(const std::string& message, int code) const {
  if (rank_ == 0) {
    std::fprintf(stderr, "%s\n", message.c_str());
  } else {
    sleep(1);
    std::fprintf(stderr, "rank %d: %s\n", rank_, message.c_str());
  }
  if (engine_ != nullptr) MPI_Abort(MPI_COMM_WORLD, code);
  std::exit(code);
}

}  // namespace tapegrad
