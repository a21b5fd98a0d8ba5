// Orders in which the packets of a flow leave. Both ends compute the same keys.
#pragma once

#include <cstdint>

#include "protocol/endpoint_state.h"
#include "protocol/round.h"

namespace leeway::protocol {

class PacketOrder {
 public:
  explicit PacketOrder(const EndpointConfig& config) : config_(config) {}

  // Key of the packet at which a pass over the owner's shard starts in collective `number`. It is
  // the same for all senders.
  std::uint64_t rotation_key(std::uint32_t number, FlowKind kind, Rank owner) const;
  // Key of the order of packets inside each chunk.
  std::uint64_t inner_key(std::uint32_t number, FlowKind kind, Rank from, Rank to) const;
  // Cursor over the packets of this rank's flow to a receiver, or to every rank.
  schedule::PacketCursor cursor(const Round& round, FlowKind kind, Rank to,
                                const schedule::PacketGrid& grid) const;

 private:
  const EndpointConfig& config_;
};

}  // namespace leeway::protocol
