// I1: no packet appears or vanishes without being counted. Compares the network's counters with
// each other, and with the steps that an observer of the network is told.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "checker/check.h"
#include "network/network.h"

namespace leeway::sim {

class Conservation {
 public:
  explicit Conservation(Check& check) : check_(check) {}

  void on_packet(PacketStep step, const Packet& packet) {
    ++steps_[static_cast<std::size_t>(packet.traffic)][static_cast<std::size_t>(step)];
  }

  using Counts = std::array<std::uint64_t, kTrafficKinds>;
  void check(Instant now, const NetworkCounters& counters, const Counts& under_way);
  // `links`: of all links that have counters.
  void check_links(Instant now, std::span<const LinkCounters> links, const Counts& under_way);

 private:
  Check& check_;
  std::array<std::array<std::uint64_t, kPacketSteps>, kTrafficKinds> steps_{};
};

}  // namespace leeway::sim
