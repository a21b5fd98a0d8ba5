// Records what the network did to every data packet of a group, so that tests can compare results
// and reports with it.
#pragma once

#include <map>
#include <tuple>

#include "support/engine_group.h"
#include "wire/packet.h"

namespace leeway::testing {

class ArrivalRecord {
 public:
  // Records from construction on. Sets the group's observer, which points to this object, so the
  // group must not outlive the object.
  explicit ArrivalRecord(EngineGroup& group) {
    group.observer = [this](const impairment::PacketAddress& packet, const impairment::Fate& fate) {
      if (packet.control) return;
      Copies& copies = copies_[key(packet)];
      ++copies.sent;
      const int arrived = fate.lost || fate.corrupt ? 0 : fate.duplicate ? 2 : 1;
      copies.arrived += arrived;
      if (packet.attempt == 0) copies.first_pass_arrived += arrived;
    };
  }

  struct Copies {
    int sent = 0;
    int arrived = 0;
    int first_pass_arrived = 0;
  };
  Copies copies(std::uint32_t round, wire::FlowKind kind, Rank from, Rank to,
                std::uint32_t index) const {
    const auto found = copies_.find({round, static_cast<std::uint8_t>(kind), from, to, index});
    return found == copies_.end() ? Copies{} : found->second;
  }
  bool arrived(std::uint32_t round, wire::FlowKind kind, Rank from, Rank to,
               std::uint32_t index) const {
    return copies(round, kind, from, to, index).arrived > 0;
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint8_t, Rank, Rank, std::uint32_t>;
  static Key key(const impairment::PacketAddress& packet) {
    return {packet.round, packet.phase, packet.source, packet.destination, packet.index.value};
  }
  std::map<Key, Copies> copies_;
};

}  // namespace leeway::testing
