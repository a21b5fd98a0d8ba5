// The part of Wiring that finds the links which a rule means by a tier and two sets of ranks.
#include <algorithm>

#include "topology/wiring.h"

namespace leeway::sim {

void Wiring::choose(scenario::Link::Tier tier, const RankFlags& from, const RankFlags& to,
                    std::vector<LinkId>& links) const {
  switch (tier) {
    case scenario::Link::path:
      if (is_ring()) choose_neighbours(from, to, links);
      return;
    case scenario::Link::uplink:
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        if (from[rank]) links.push_back(rank);
      }
      return;
    case scenario::Link::downlink:
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        if (to[rank]) links.push_back(ranks_ + rank);
      }
      return;
    case scenario::Link::fabric:
      return choose_fabric(from, to, links);
  }
}

void Wiring::choose_neighbours(const RankFlags& from, const RankFlags& to,
                               std::vector<LinkId>& links) const {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (!from[rank]) continue;
    if (to[(rank + 1) % ranks_]) links.push_back(rank);
    if (to[(rank + ranks_ - 1) % ranks_]) links.push_back(ranks_ + rank);
  }
}

// Looks at pairs of units (switches or regions), because the ways depend only on the units. A pair
// has its links chosen if some rank of the first unit may send to another rank in the second unit.
// Packets within one switch pass no fabric link.
void Wiring::choose_fabric(const RankFlags& from, const RankFlags& to,
                           std::vector<LinkId>& links) const {
  struct Unit {
    Place place;
    std::uint32_t senders = 0, receivers = 0, both = 0;
  };
  std::vector<Unit> units(units_);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    Unit& unit = units[place_[rank].unit];
    unit.place = place_[rank];
    unit.senders += from[rank];
    unit.receivers += to[rank];
    unit.both += from[rank] && to[rank];
  }
  FabricUse use;
  use.unit_out = use.unit_in = use.pod_out = use.pod_in = RankFlags(units_, false);
  for (const Unit& a : units) {
    for (const Unit& b : units) {
      const std::uint32_t with_itself = &a == &b ? a.both : 0;
      if (a.senders * b.receivers <= with_itself) continue;
      if (kind_ == scenario::Topology::kRegions) {
        links.push_back(fabric_ + a.place.unit * units_ + b.place.unit);
      } else {
        use_fabric(a.place, b.place, use);
      }
    }
  }
  choose_used(use, links);
}

void Wiring::use_fabric(Place from, Place to, FabricUse& use) const {
  const std::uint32_t hops = fabric_hops(from, to);
  if (hops == 0) return;
  use.unit_out[from.unit] = use.unit_in[to.unit] = true;
  if (hops == 2) return;
  use.pod_out[from.pod] = use.pod_in[to.pod] = true;
}

void Wiring::choose_used(const FabricUse& use, std::vector<LinkId>& links) const {
  const bool pods = kind_ == scenario::Topology::kFatTree;
  for (std::uint32_t unit = 0; unit < units_; ++unit) {
    const std::uint32_t pod = unit / std::max(1u, width_);
    for (std::uint32_t port = 0; port < width_; ++port) {
      if (use.unit_out[unit]) links.push_back(level(0, unit, port));
      if (use.unit_in[unit]) links.push_back(level(pods ? 3 : 1, unit, port));
      if (pods && use.pod_out[pod]) links.push_back(level(1, unit, port));
      if (pods && use.pod_in[pod]) links.push_back(level(2, unit, port));
    }
  }
}

}  // namespace leeway::sim
