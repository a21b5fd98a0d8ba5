// Tracks how old a rank's copies of the other ranks' parameters are, block by block, and which
// blocks the next broadcast must bring. This is the arithmetic of Replica without its
// communication.
//
//   ReplicaLedger ledger({.self = rank, .size = size, .elements = n,
//                         .packet_elements = parameter_packet_elements(codec, datagram_bytes),
//                         .age_max = 8});
//   for every step:
//     OperationSpec spec{.kind = OperationKind::replica_broadcast, ...};
//     spec.ledger = ledger.begin_broadcast();
//     ... the operation runs to its end; its packets are counted in the ledger ...
//     Status overdue = ledger.finish_broadcast(deadline);
//
// A block has the elements of one packet. Its age is how many versions it is behind: 0 if the last
// broadcast brought it. A rank's own blocks do not age and are not counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/operation_spec.h"
#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"
#include "schedule/shard_map.h"

namespace leeway::collective {

// Returns the elements of a block: those that one datagram of a replica_broadcast carries in this
// codec. `datagram_bytes` includes headers.
std::uint32_t parameter_packet_elements(const CodecOptions& codec, std::size_t datagram_bytes);

class ReplicaLedger {
 public:
  // Number of bins of the histogram. The last bin also counts all higher ages.
  static constexpr std::size_t kAgeBins = 256;

  struct Options {
    Rank self = 0;
    int size = 1;
    std::size_t elements = 0;  // elements of the whole tensor, cut by ShardMap::even
    std::uint32_t packet_elements = 1;
    std::uint32_t age_max = 0;  // no block gets older than this; 0 allows any age
  };

  explicit ReplicaLedger(const Options& options);

  // Demands the blocks that would otherwise become older than age_max. The result points into this
  // object.
  BroadcastLedger* begin_broadcast();

  // Updates all ages. Returns kDeadlineExceeded if a demanded block did not arrive, or kPeerLost if
  // `peer_left` is also set. `deadline`: the broadcast's, for the error text.
  Status finish_broadcast(Duration deadline, bool peer_left = false);

  const schedule::ShardMap& shards() const { return shards_; }
  Rank owner_of(std::size_t element) const;
  std::uint32_t age_of(std::size_t element) const;  // 0 for an element of our own

  // Figures over all broadcasts so far. age_histogram() counts blocks by their age after a
  // broadcast.
  std::uint32_t age_max_seen() const { return age_max_seen_; }
  std::uint64_t blocks_refreshed() const { return refreshed_; }  // demanded, and arrived
  const std::vector<std::uint64_t>& age_histogram() const { return histogram_; }
  double age_mean() const;

 private:
  std::uint32_t count_block(Rank owner, std::size_t block);

  Options options_;
  schedule::ShardMap shards_;
  BroadcastLedger ledger_;
  std::vector<std::vector<std::uint32_t>> ages_;  // by owner and block
  std::vector<std::uint64_t> histogram_ = std::vector<std::uint64_t>(kAgeBins, 0);
  std::uint32_t age_max_seen_ = 0;
  std::uint64_t refreshed_ = 0;
};

}  // namespace leeway::collective
