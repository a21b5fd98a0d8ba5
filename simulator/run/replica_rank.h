// What a rank of a replica step keeps between rounds: the ages of its blocks, and unrounded values
// of its own shard.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collective/replica_ledger.h"
#include "leeway/status.h"
#include "scenario.pb.h"
#include "schedule/shard_map.h"

namespace leeway::sim {

class ReplicaRank {
 public:
  // `parameters` holds this rank's values of all shards, and must outlive the object.
  static Result<ReplicaRank> make(const scenario::Operation& operation, std::uint32_t rank,
                                  std::uint32_t ranks, std::span<float> parameters);

  schedule::Shard own_shard() const { return ledger_->shards()[rank_]; }
  // Returns the unrounded values of the rank's own shard, for the optimizer. Broadcasts send a
  // rounded copy.
  std::span<float> owned();

  collective::BroadcastLedger* begin_broadcast();
  // Returns kDeadlineExceeded, naming the block, if a block is too old and was not refreshed.
  Status finish_broadcast() { return ledger_->finish_broadcast(deadline_); }

  const collective::ReplicaLedger& ages() const { return *ledger_; }

 private:
  std::span<float> own_parameters() const {
    return parameters_.subspan(own_shard().offset, own_shard().count);
  }

  Rank rank_ = 0;
  Duration deadline_{0};
  std::span<float> parameters_;
  // unrounded values of the own shard; empty if the codec rounds nothing
  std::vector<float> master_;
  std::unique_ptr<collective::ReplicaLedger> ledger_;  // operations hold pointers into it
};

}  // namespace leeway::sim
