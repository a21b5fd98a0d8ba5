#include "collective/relayed_paths.h"

namespace leeway::collective {

bool RelayedPaths::lead(Rank slot, Rank relay, std::size_t further) {
  if (slot >= routes_.size()) routes_.resize(slot + std::size_t{1});
  routes_[slot] = {relay, further};
  const bool held = paths_[slot].held();
  paths_[slot].hold(false);
  return held;
}

void RelayedPaths::on_share(Instant now, Rank relay, std::uint64_t bytes_per_second) {
  if (relay >= paces_.size()) paces_.resize(relay + std::size_t{1});
  paces_[relay].limit(now, bytes_per_second);
}

void RelayedPaths::charge(Instant now, const Route& route, std::size_t bytes) {
  congestion::RelayPace& pace = paces_[route.relay];
  pace.on_sent(now, bytes);
  const Instant opens_at = pace.opens_at();
  if (opens_at <= now) return;
  for (Rank slot = 0; slot < routes_.size(); ++slot) {
    if (routes_[slot].relay == route.relay) paths_[slot].hold(true);
  }
  wake_at_ = std::min(wake_at_, opens_at);
}

}  // namespace leeway::collective
