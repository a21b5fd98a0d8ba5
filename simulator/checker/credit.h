// I8: a rank sends data to a peer only while fewer than a window of datagrams are in flight to it.
//
// An observer of the network can check this. Each data datagram carries a number. The number may
// exceed the largest number that the peer's reports confirm by at most a window. Only reports that
// the sender has received count.
#pragma once

#include <cstdint>
#include <vector>

#include "checker/check.h"
#include "collective/engine.h"
#include "wire/packet.h"

namespace leeway::sim {

class Credit {
 public:
  Credit(Check& check, std::vector<const collective::Engine*> engines)
      : check_(check), engines_(std::move(engines)), links_(engines_.size() * engines_.size()) {}

  void on_report(Rank rank, Rank peer, const wire::Report& report);
  // If `to` is kEveryRank (multicast), the reports of at least one receiver must allow the
  // datagram. An observer cannot tell which receivers a pass still serves.
  void on_data_sent(Instant now, Rank from, Rank to, std::uint32_t sequence);

 private:
  struct LinkState {
    std::uint32_t reported = 0;
    std::uint32_t group_reported = 0;
  };
  void on_group_data_sent(Instant now, Rank from, std::uint32_t sequence);
  LinkState& link(Rank from, Rank to) { return links_[std::size_t{from} * engines_.size() + to]; }

  Check& check_;
  std::vector<const collective::Engine*> engines_;
  std::vector<LinkState> links_;
};

}  // namespace leeway::sim
