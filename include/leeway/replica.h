// Replicas of sharded parameters over a lossy network, whose drift from one another is bounded.
//
// Every rank holds a full copy of the parameters and owns one shard of them. A training step is
//   replica.reduce_gradients(gradient, lossy);   // my shard of it becomes the average
//   ... the caller's optimizer updates replica.owned() ...
//   replica.broadcast_parameters();              // my shard goes to all, theirs come to me
//
// Packets of the broadcast carry absolute values. A rank that misses a packet keeps the stale
// values, and is up to date again after the next broadcast. Ages are tracked per packet-sized
// block; a block whose age would exceed age_max is requested until it arrives. Derivation of the
// drift bounds: src/math/estimate/README.md, "Drift".
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "leeway/communicator.h"
#include "leeway/export.h"

namespace leeway {
inline namespace v0 {

// How far replicas may fall behind, and how parameters travel.
struct ReplicaOptions {
  // Limit on a block's age in versions, 1 .. 255; 0 = none. A block beyond it is refreshed exactly.
  std::uint32_t age_max = 8;
  // Delivery class of broadcast_parameters(); with exact, replicas stay equal
  Delivery::Kind delivery = Delivery::Kind::best_effort;
  Duration deadline = std::chrono::seconds(5);
  CodecOptions codec;  // rounding automatic = nearest: parameters are not averaged over ranks
  // Every `drift_every` broadcasts the ranks exchange `drift_samples` values of each shard exactly
  // and measure how far the replicas are apart. 0 = never.
  std::uint32_t drift_every = 16;
  std::uint32_t drift_samples = 256;
};

// Measured and predicted drift of the replicas. Mean squares are per element, averaged over all
// measurements so far. In the formulas, x_a is the value of an element on rank a; p, s^2 and u^2
// are members below.
struct DriftReport {
  std::uint64_t measurements = 0;  // exchanges that measured (ReplicaOptions::drift_every)
  double pair_measured = 0.0;    // E (x_a - x_b)^2 over pairs of ranks that do not own the element
  double owner_measured = 0.0;   // E (x_owner - x_a)^2
  double pair_predicted = 0.0;   // 2p/(1-p^2) s^2 + 2p/(1-p)^2 u^2
  double owner_predicted = 0.0;  // p/(1-p) s^2 + p(1+p)/(1-p)^2 u^2
  // 2p/(1+p) * gap_mean_square. A gap is the distance of a rank that received the last broadcast
  // from a rank that did not.
  double pair_predicted_gap = 0.0;
  double loss = 0.0;              // p: realised loss of the broadcasts
  double step_variance = 0.0;     // s^2: variance of one optimizer step per element
  double step_mean_square = 0.0;  // u^2: squared mean step, corrected for its own variance
  double gap_mean_square = 0.0;
  std::uint32_t age_max_seen = 0;
  double age_mean = 0.0;  // over blocks and broadcasts; p/(1-p) when losses are independent
  std::uint64_t blocks_refreshed = 0;  // blocks that were requested because of age_max, and arrived
  // Element a is the number of steps that blocks spent at age a, summed over all blocks. The last
  // element includes higher ages
  std::vector<std::uint64_t> age_histogram;
};

// This rank's full copy of the parameters, of which it owns one shard. Not thread-safe: one step at
// a time. All ranks must make the same calls in the same order.
class LEEWAY_EXPORT Replica {
 public:
  // Makes a replica of `parameters`, which must stay valid. They must hold the same values on all
  // ranks; otherwise call synchronize() first. Calls fail with kCancelled once the communicator has
  // been destroyed.
  static Result<std::unique_ptr<Replica>> create(Communicator& communicator,
                                                 std::span<float> parameters,
                                                 const ReplicaOptions& options = {});
  ~Replica();

  // owned_offset() and owned_count() give the range of the parameters (and of gradients) that this
  // rank owns, in the tensor given to create(). owned() is its values, for the optimizer to update.
  // If the codec rounds, owned() is a float32 master copy, so that steps smaller than the codec's
  // resolution add up. After a broadcast the tensor then holds rounded values, as on all ranks.
  std::size_t owned_offset() const;
  std::size_t owned_count() const;
  std::span<float> owned();

  // Reduces `gradient`, which must have as many elements as the parameters. On return the part of
  // `gradient` that this rank owns holds the reduction; its other elements are unchanged.
  Result<CollectiveReport> reduce_gradients(std::span<float> gradient,
                                            const CollectiveOptions& options);

  // Sends the owned shard and receives the others' shards. Fails only if a block past age_max could
  // not be refreshed (the text names rank and peer), or if the delivery is exact and was not
  // complete: with kPeerLost if a rank has left or is dead, else with kDeadlineExceeded.
  Result<CollectiveReport> broadcast_parameters();

  // Exact: makes all replicas bitwise equal to the owners' values.
  Result<CollectiveReport> synchronize();

  // Distance of the replicas, as measured so far and as predicted. Ages and loss are this rank's
  // own.
  DriftReport drift() const;

 private:
  struct Impl;
  explicit Replica(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace leeway
