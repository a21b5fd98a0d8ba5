// I8: data leave a rank only while fewer than a window of its datagrams are unreported by the peer.
//
// This can be seen from outside. A data datagram carries a number. That number is at most a window
// above the largest one that the peer's reports, as far as the sender has got them, confirm.
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
  // `to` may be kEveryRank: then the reports of some receiver must allow it. An observer cannot
  // tell which receivers a pass still serves.
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
