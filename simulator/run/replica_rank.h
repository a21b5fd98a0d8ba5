// State of a rank of a replica step between rounds: the ages of its blocks, and the unrounded
// values of its own shard.
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
  // `parameters`: the values of all shards that this rank holds; they stay where they are.
  static Result<ReplicaRank> make(const scenario::Operation& operation, std::uint32_t rank,
                                  std::uint32_t ranks, std::span<float> parameters);

  schedule::Shard own_shard() const { return ledger_->shards()[rank_]; }
  // Returns the owned values for the optimizer. Their rounded copy is sent.
  std::span<float> owned();

  collective::BroadcastLedger* begin_broadcast();
  // Returns kDeadlineExceeded, with the block's name, if a block is too old and could not be
  // refreshed.
  Status finish_broadcast() { return ledger_->finish_broadcast(deadline_); }

  const collective::ReplicaLedger& ages() const { return *ledger_; }

 private:
  std::span<float> own_parameters() const {
    return parameters_.subspan(own_shard().offset, own_shard().count);
  }

  Rank rank_ = 0;
  Duration deadline_{0};
  std::span<float> parameters_;
  // the own shard, unrounded; without elements if the codec rounds nothing
  std::vector<float> master_;
  std::unique_ptr<collective::ReplicaLedger> ledger_;  // operations hold pointers into it
};

}  // namespace leeway::sim
