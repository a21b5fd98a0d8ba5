// The kinds of operations. Their numbers are sent in OperationTag, so new kinds go to the end.
#pragma once

#include <cstdint>

namespace leeway::wire {

enum class OperationKind : std::uint8_t {
  all_reduce = 0,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  send,
  recv,
  barrier,
  replica_reduce,     // reduce_scatter over even shards, in place
  replica_broadcast,  // all_gather over even shards, in place; packets may be lost
  split,              // an all_gather of each rank's wishes for a new communicator
  exchange,           // several sends and receives in one call; never on the wire itself
};
inline constexpr int kOperationKinds = 15;
static_assert(kOperationKinds == static_cast<int>(OperationKind::exchange) + 1);

// Returns the name that callers know, such as "all_reduce"; "unknown" for any other value.
const char* to_string(OperationKind kind);

}  // namespace leeway::wire
