/// Data-parallel training: each rank computes the gradient of its share of the batch, and their sum is everybody's.
///
///   Ranks ranks;                                           // as mpirun has started them, or one
///   distributed::broadcast(ranks, net);                    // everybody begins with the first's parameters
///   distributed::GradientSum gradients(ranks, net);
///   for (...) {
///     const Share mine = ranks.share(batch);               // of a batch that every rank has drawn alike
///     Tape tape;
///     const Tensor loss = sum(losses(net, mine)) / batch;  // the sum of all ranks' is the mean over the batch
///     tape.backward(loss);
///     const double mean = gradients.finish(loss.item());   // from here on, as in one process
///     optimizer.step();
///     optimizer.zero_grad();
///   }
///
/// Losses and parameters are those of one process up to the order of sums, for any number of ranks. What draws random
/// numbers while it computes, dropout, needs OwnNumbers.
#pragma once

#include <cmath>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

#include "autograd/random.hpp"
#include "autograd/watch.hpp"
#include "distributed/ranks.hpp"
#include "nn/fingerprint.hpp"
#include "nn/module.hpp"
#include "nn/safetensors.hpp"

namespace TAPEGRAD::distributed {

/// Refuses, on all ranks alike, parameters whose names, shapes or (if `values`) numbers are not the first rank's; names
/// the first such parameter.
inline void require_same(const Ranks& ranks, const nn::Module& module, bool values) {
  if (ranks.size() == 1) return;
  const auto named = module.named_parameters();
  std::vector<std::uint64_t> own;  // a fingerprint of each
  for (const auto& [name, parameter] : named) {
    own.push_back(fingerprint(name + to_text(parameter.shape())));
    if (values) own.back() = fingerprint(parameter.value().data(), parameter.size() * sizeof(Real), own.back());
  }
  std::vector<std::uint64_t> first = own;
  std::size_t count = own.size();
  ranks.broadcast(&count, sizeof count);
  first.resize(count);
  ranks.broadcast(first.data(), count * sizeof(std::uint64_t));

  const auto differs =
      static_cast<std::size_t>(std::mismatch(own.begin(), own.end(), first.begin(), first.end()).first - own.begin());
  const bool same = own == first;
  const std::vector<double> places = ranks.gather(same ? INFINITY : static_cast<double>(differs));
  const auto least = std::min_element(places.begin(), places.end());
  if (std::isinf(*least)) return;
  const auto place = static_cast<std::size_t>(*least);
  refuse("distributed", "parameters must be the same on all ranks",
         std::string(place < named.size() ? "another " + in_quotes(named[place].first) : "more of them")
             .append(" on rank ")
             .append(std::to_string(least - places.begin())));
}

/// Gives the module of every rank the first's parameters. Refuses those of other names or shapes.
inline void broadcast(const Ranks& ranks, nn::Module& module) {
  require_same(ranks, module, false);
  for (Parameter& parameter : module.parameters()) {
    ranks.broadcast(parameter.mutable_value().data(), parameter.size() * sizeof(Real));
  }
}

/// The first's state: a checkpoint that nobody else needs to be able to read. Others may give anything.
///
///   State all = distributed::broadcast(ranks, ranks.first() ? nn::load_checkpoint(path) : State());
inline State broadcast(const Ranks& ranks, State state) {
  if (ranks.size() == 1) return state;
  std::istringstream bytes(ranks.broadcast(ranks.first() ? nn::to_safetensors(state) : ""));
  return nn::from_safetensors(bytes, "broadcast");
}

/// Lets each rank draw numbers of its own (for dropout) while it lives; before and after it, a generator that is the
/// same on all ranks stays so, however many each has drawn. Does nothing where there is one rank. Two runs draw the
/// same only where they have the same number of ranks.
class OwnNumbers {
 public:
  OwnNumbers(const Ranks& ranks, Rng& rng) : rng_(rng), common_(rng) {
    if (ranks.size() == 1) return;
    changed_ = true;
    rng_ = Rng(common_.bits() + static_cast<std::uint64_t>(ranks.rank()));
  }
  ~OwnNumbers() {
    if (changed_) rng_ = common_;
  }
  OwnNumbers(const OwnNumbers&) = delete;
  OwnNumbers& operator=(const OwnNumbers&) = delete;

 private:
  Rng& rng_;
  Rng common_;
  bool changed_ = false;
};

/// Sums the gradients of a module's parameters over all ranks, while the backward pass is still running: parameters
/// are put into buckets from the last to the first, as a backward pass comes to them, and the sum of a bucket begins as
/// soon as all its gradients are there.
///
/// Listens to this thread's tapes while it lives. In each step one backward pass reaches the parameters, whose
/// gradients must have been dropped before; then `finish`.
class GradientSum {
 public:
  /// Refuses parameters that differ between ranks (see `broadcast`). All buckets but the last have at least
  /// `bucket_bytes`: smaller ones begin earlier, larger ones cost less latency.
  GradientSum(Ranks& ranks, const nn::Module& module, std::size_t bucket_bytes = std::size_t{2} << 20) : ranks_(ranks) {
    require_same(ranks, module, true);
    if (ranks.size() == 1) return;
    const auto named = module.named_parameters();
    std::size_t elements = 0;
    for (auto at = named.rbegin(); at != named.rend(); ++at) {
      const auto& [name, parameter] = *at;
      if (!places_.emplace(&parameter.cell(), slots_.size()).second) continue;  // shared
      if (elements == 0) buckets_.push_back({slots_.size(), slots_.size(), 0, {}});
      slots_.push_back({name, parameter, buckets_.size() - 1, elements, false});
      elements += parameter.size();
      Bucket& bucket = buckets_.back();
      bucket.end = slots_.size();
      bucket.awaited = bucket.end - bucket.begin;
      bucket.numbers.resize(elements + bucket.awaited);
      if (elements * sizeof(Real) >= bucket_bytes) elements = 0;
    }
    listener_.emplace(*this);
  }
  ~GradientSum() {
    // MPI may still write to buckets that were begun and not finished, and cannot be told to stop.
    if (sent_ > 0) new std::vector<Bucket>(std::move(buckets_));
  }
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  /// After the backward pass: puts the sums over all ranks in place of the gradients, and returns the sum of the
  /// losses. A rank that had nothing to do (an empty share) says 0. A parameter that has a gradient on some ranks only
  /// counts as 0 on the others. Where the loss of some rank is not finite, throws std::runtime_error on all of them,
  /// and names it; every gradient is then as it was.
  double finish(double loss) {
    while (sent_ < buckets_.size()) send();
    const std::vector<double> losses = ranks_.gather(loss);
    ranks_.wait();
    sent_ = 0;
    double total = 0;
    for (std::size_t rank = 0; rank < losses.size(); ++rank) {
      if (!std::isfinite(losses[rank])) {
        for (Slot& slot : slots_) expect(slot);
        const std::string where = losses.size() == 1 ? "" : " on rank " + std::to_string(rank);
        throw std::runtime_error("the loss" + where + " is " + to_text(losses[rank]));
      }
      total += losses[rank];
    }
    for (Slot& slot : slots_) {
      deliver(slot);
      expect(slot);
    }
    return total;
  }

 private:
  struct Listener : Watcher {
    explicit Listener(GradientSum& gradients) : sum(gradients) {}
    void before_rule(const Tape&, const Step& step, const Array& dy) override {
      // The tape comes to a leaf's step, the one before its first use, when all uses have added to its gradient.
      if (const Tensor* leaf = step.leaf()) sum.take(*leaf, dy);
      sum.ranks_.progress();
    }
    GradientSum& sum;
  };

  struct Slot {
    std::string name;
    Parameter parameter;
    std::size_t bucket;
    std::size_t at;  // among the elements of the bucket
    bool arrived;
  };

  /// The gradients of the slots from `begin` on, before `end`, one after the other; then a number for each slot, on how
  /// many ranks it has a gradient.
  struct Bucket {
    std::size_t begin, end;
    std::size_t awaited;
    PoolVector<Real> numbers;

    Real& count(std::size_t slot) { return numbers[numbers.size() - (end - slot)]; }
  };

  void take(const Tensor& leaf, const Array& gradient) {
    const auto place = places_.find(&leaf.cell());
    if (place == places_.end()) return;
    Slot& slot = slots_[place->second];
    require(!slot.arrived && !leaf.has_grad(), "GradientSum",
            "a parameter must get one gradient in a step, after zero_grad(), before finish()", in_quotes(slot.name));
    Bucket& bucket = buckets_[slot.bucket];
    std::copy_n(gradient.data(), gradient.size(), bucket.numbers.data() + slot.at);
    slot.arrived = true;
    --bucket.awaited;
    // In the same order on all ranks, whatever the order that gradients come in.
    while (sent_ < buckets_.size() && buckets_[sent_].awaited == 0) send();
  }

  void send() {
    Bucket& bucket = buckets_[sent_++];
    for (std::size_t i = bucket.begin; i < bucket.end; ++i) {
      bucket.count(i) = slots_[i].arrived ? Real(1) : Real(0);
      if (!slots_[i].arrived) std::fill_n(bucket.numbers.data() + slots_[i].at, slots_[i].parameter.size(), Real(0));
    }
    ranks_.start_sum(bucket.numbers.data(), bucket.numbers.size());
  }

  void deliver(Slot& slot) {
    Bucket& bucket = buckets_[slot.bucket];
    if (bucket.count(static_cast<std::size_t>(&slot - slots_.data())) == 0) return;
    Array*& grad = slot.parameter.cell().grad;
    if (grad == nullptr) grad = pool_new<Array>(empty_array(slot.parameter.shape()));
    std::copy_n(bucket.numbers.data() + slot.at, grad->size(), grad->data());
  }

  void expect(Slot& slot) {
    slot.arrived = false;
    Bucket& bucket = buckets_[slot.bucket];
    bucket.awaited = bucket.end - bucket.begin;
  }

  Ranks& ranks_;
  std::vector<Slot> slots_;
  std::unordered_map<const Cell*, std::size_t> places_;
  std::vector<Bucket> buckets_;  // in the order that they are sent in
  std::size_t sent_ = 0;
  std::optional<Listener> listener_;
};

}  // namespace TAPEGRAD::distributed
