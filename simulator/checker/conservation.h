// I1: no packet appears or vanishes without being counted. The network's counters are compared with
// each other, and with the events that its observer hears.
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
  // `links`: the counters of all links.
  void check_links(Instant now, std::span<const LinkCounters> links, const Counts& under_way);

 private:
  Check& check_;
  std::array<std::array<std::uint64_t, kPacketSteps>, kTrafficKinds> steps_{};
};

}  // namespace leeway::sim
