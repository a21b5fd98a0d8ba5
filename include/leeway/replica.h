// Bounded-drift parameter replication: sharded ownership, absolute versioned values, keep-stale,
// hard age cap.
//
// Every rank holds a full copy of the parameters and owns one shard of them. A training step is
//   replica.reduce_gradients(gradient, lossy);   // my shard of it becomes the average
//   ... the caller's optimizer updates replica.owned() ...
//   replica.broadcast_parameters();              // my shard goes to all, theirs come to me
//
// Packets of the broadcast carry absolute values, so a rank that misses one keeps the stale value
// and is whole again with the next. Ages are tracked per packet-sized block; a block whose age
// would exceed age_max is requested until it arrives. Derivation of the drift bounds:
// src/estimate/README.md, "Drift".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "leeway/communicator.h"
#include "leeway/export.h"

namespace leeway {
inline namespace v0 {

// How old replicas may become, and how parameters travel.
struct ReplicaOptions {
  // Versions a block may be behind before it is refreshed exactly, 1 .. 255; 0 = no cap.
  std::uint32_t age_max = 8;
  // Of broadcast_parameters; exact = replicas stay equal
  Delivery::Kind delivery = Delivery::Kind::best_effort;
  Duration deadline = std::chrono::seconds(5);
  CodecOptions codec;  // rounding automatic = nearest: parameters are not averaged over ranks
  // Every `drift_every` broadcasts the ranks exchange `drift_samples` values a shard exactly and
  // measure how far the replicas are apart. 0 = never.
  std::uint32_t drift_every = 16;
  std::uint32_t drift_samples = 256;
};

// Measured beside predicted; mean squares per element, averaged over all measurements so far.
struct DriftReport {
  std::uint64_t measurements = 0;  // exchanges that measured (ReplicaOptions::drift_every)
  double pair_measured = 0.0;    // E (x_a - x_b)^2 over pairs of ranks that do not own the element
  double owner_measured = 0.0;   // E (x_owner - x_a)^2
  double pair_predicted = 0.0;   // 2p/(1-p^2) s^2 + 2p/(1-p)^2 u^2
  double owner_predicted = 0.0;  // p/(1-p) s^2 + p(1+p)/(1-p)^2 u^2
  // 2p/(1+p) * (mean squared gap given that exactly one of the two received)
  double pair_predicted_gap = 0.0;
  double loss = 0.0;              // p: realised loss of the broadcasts
  double step_variance = 0.0;     // s^2: variance of one optimizer step per element
  double step_mean_square = 0.0;  // u^2: squared mean step, corrected for its own variance
  double gap_mean_square = 0.0;
  std::uint32_t age_max_seen = 0;
  double age_mean = 0.0;  // over blocks and broadcasts; p/(1-p) when losses are independent
  std::uint64_t blocks_refreshed = 0;  // blocks that had to arrive because of age_max, and did
  // [a] = block-steps spent at age a (last bin: that and above)
  std::vector<std::uint64_t> age_histogram;
};

// Not thread-safe: one step at a time. All ranks must make the same calls in the same order.
class LEEWAY_EXPORT Replica {
 public:
  // `parameters` must stay valid and must hold the same values on all ranks, or call synchronize()
  // first. Once the communicator has gone, calls fail with kCancelled.
  static Result<std::unique_ptr<Replica>> create(Communicator& communicator,
                                                 std::span<float> parameters,
                                                 const ReplicaOptions& options = {});
  ~Replica();

  // The part of the parameters (and of gradients) this rank owns, a range of the tensor given to
  // create(), and its values for the optimizer to update. Where the codec rounds, these are a
  // float32 master copy, so that steps smaller than the codec's resolution add up; the tensor holds
  // what all ranks hold, the rounded values, after each broadcast.
  std::size_t owned_offset() const;
  std::size_t owned_count() const;
  std::span<float> owned();

  // gradient.size() == parameters.size(). On return gradient[owned range] holds the reduction; the
  // rest is untouched.
  Result<CollectiveReport> reduce_gradients(std::span<float> gradient,
                                            const CollectiveOptions& options);

  // Sends the owned shard, receives the others'. Fails only if a block past age_max could not be
  // refreshed by the deadline (the text names rank and peer), or if the delivery is exact and was
  // not complete.
  Result<CollectiveReport> broadcast_parameters();

  // Exact: all replicas become bitwise equal to the owners' values.
  Result<CollectiveReport> synchronize();

  // How far replicas are apart, as measured so far and as predicted. Ages and loss are those of
  // this rank.
  DriftReport drift() const;

 private:
  struct Impl;
  explicit Replica(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace leeway
