// Makes the library's calls from a scenario's operation, for each rank and round.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/operation_spec.h"
#include "endpoint/endpoints.h"
#include "run/rank_memory.h"
#include "scenario.pb.h"

namespace leeway::sim {

class OperationPlan {
 public:
  // Plans tensors of `elements` float32 values. The scenario is valid.
  static Result<OperationPlan> make(const scenario::Scenario& scenario, std::size_t elements);

  // Returns the calls that each rank makes in a round, in the order in which it makes them.
  std::span<const CallKind> calls() const { return calls_; }
  std::size_t elements() const { return elements_; }
  bool is_replica_step() const { return calls_.back() == CallKind::replica_broadcast; }
  // Returns the options of the messages, if calls() has any.
  const CollectiveOptions& message_options() const { return message_options_; }

  // The place of a rank's own block in a tensor of blocks: elements before the block, and in it.
  struct OwnBlock {
    std::size_t offset = 0;
    std::size_t count = 0;
  };
  OwnBlock own_block(Rank rank, std::span<const std::size_t> lengths) const;

  // Returns the operation of a call; messages are planned by MessagePlan instead. `weight` is the
  // share of the planned work that is behind the gradient. The buffers are those of `memory`, which
  // is empty in a scenario without contents.
  collective::OperationSpec spec(CallKind kind, Rank rank, RankMemory& memory, double weight) const;

 private:
  std::vector<CallKind> calls_;
  std::size_t elements_ = 0;
  std::uint32_t ranks_ = 0;
  CollectiveOptions options_;  // options of the gradient's call, or of the only call
  CollectiveOptions message_options_;
  CollectiveOptions parameter_options_;  // options of replica_broadcast
  bool previous_as_control_ = false;
  Rank root_ = 0;
  bool contents_ = true;
};

// Checks that the endpoints support the scenario's calls, also those of further communicators.
// Returns kInvalidArgument or kUnsupported, with the library's message, for a call that the library
// always refuses.
Status check_calls(const scenario::Scenario& scenario);

}  // namespace leeway::sim
