// Paths through other processes (relays), and how much each relay forwards for this one (WIRE
// 9.10). All paths through a relay share the relay's rate, and are held when it is used up.
#pragma once

#include <algorithm>
#include <vector>

#include "collective/paths.h"
#include "congestion/relay_pace.h"

namespace leeway::collective {

class RelayedPaths {
 public:
  explicit RelayedPaths(Paths& paths) : paths_(paths) {}

  // Notes that the path leads through `relay` from now on (kNoRank: through none), and that its
  // datagrams become `further` bytes longer. If the path was held, releases it and returns true.
  bool lead(Rank slot, Rank relay, std::size_t further);
  // Sets the rate at which the relay forwards this process's data.
  void on_share(Instant now, Rank relay, std::uint64_t bytes_per_second);
  // Charges a train to the relay that forwards it, if that relay has limited this process. Holds
  // all paths through the relay if its share is used up.
  void on_train(Instant now, Rank slot, std::size_t bytes, std::size_t datagrams) {
    if (slot >= routes_.size() || routes_[slot].relay >= paces_.size()) return;
    charge(now, routes_[slot],
           bytes + datagrams * (routes_[slot].further + paths_.limits().around));
  }

  // No held path opens before this time.
  Instant wake_at() const { return wake_at_; }
  // Opens the paths whose time has come, and calls opened(slot) for each.
  template <typename Opened>
  void on_wake(Instant now, Opened&& opened) {
    if (now < wake_at_) return;
    wake_at_ = Instant::infinite_future();
    for (Rank slot = 0; slot < routes_.size(); ++slot) {
      if (!paths_.has(slot) || !paths_[slot].held()) continue;
      LEEWAY_ASSERT(routes_[slot].relay < paces_.size());  // nothing else holds a path
      const Instant opens_at = paces_[routes_[slot].relay].opens_at();
      if (opens_at > now) {
        wake_at_ = std::min(wake_at_, opens_at);
        continue;
      }
      paths_[slot].hold(false);
      opened(slot);
    }
  }

 private:
  struct Route {
    Rank relay = kNoRank;
    std::size_t further = 0;
  };

  void charge(Instant now, const Route& route, std::size_t bytes);

  Paths& paths_;
  std::vector<Route> routes_;                 // by slot
  std::vector<congestion::RelayPace> paces_;  // by slot; empty before the first relay limits
  Instant wake_at_ = Instant::infinite_future();
};

}  // namespace leeway::collective
