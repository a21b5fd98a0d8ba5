// The steps that a packet takes through the network, and counters of them.
#pragma once

#include <array>
#include <cstdint>

#include "network/packet.h"

namespace leeway::sim {

enum class PacketStep : std::uint8_t {
  sent = 0,         // entered the network
  delivered = 1,    // handed to its receiver
  duplicated = 2,   // a link made a copy, which is from now on a packet of its own (counts as sent)
  queue_full = 3,   // in this step and the following ones the packet is lost
  queue_early = 4,  // RED or CoDel
  lost = 5,         // by a loss model
  blocked = 6,      // by a partition, or because its rank is dead
};
inline constexpr int kPacketSteps = 7;
constexpr bool is_loss(PacketStep step) {
  return step >= PacketStep::queue_full;
}

// The counters of a link: offered + copied = passed + lost + in flight on the link.
struct LinkCounters {
  // The counters that every packet changes come first, so that they share a cache line.
  std::array<std::uint64_t, kTrafficKinds>
      offered{};  // packets that came to the link, copies of earlier links included
  std::array<std::uint64_t, kTrafficKinds> passed{};  // packets that arrived at its far end
  std::uint64_t bytes_passed = 0;
  std::uint64_t queue_bytes_max = 0;

  std::array<std::uint64_t, kTrafficKinds> lost{};    // packets lost by queue or loss model
  std::array<std::uint64_t, kTrafficKinds> copied{};  // made by it
  std::uint64_t queue_full = 0;
  std::uint64_t queue_early = 0;
  std::uint64_t marked = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t reordered = 0;
};

// Counters of the whole network, by kind of traffic. sent + copied = delivered + lost + in flight
// (invariant I1 of the checkers).
struct NetworkCounters {
  std::array<std::uint64_t, kTrafficKinds> sent{};
  std::array<std::uint64_t, kTrafficKinds> copied{};
  std::array<std::uint64_t, kTrafficKinds> delivered{};
  std::array<std::uint64_t, kTrafficKinds> lost{};
};

}  // namespace leeway::sim
