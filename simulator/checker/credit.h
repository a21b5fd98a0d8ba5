// I8: data leave a rank only while fewer than a window of its datagrams are unreported by the peer.
//
// Seen from outside: the number that a data datagram carries is at most a window above the largest
// number that a report of the peer, handed to the sender before, confirmed.
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
  // `to` may be kEveryRank: then some receiver's reports must allow it. Which receivers a pass
  // still serves cannot be told from outside.
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
