// The links of switches, regions or a ring: their numbers, their names, and the way of a packet
// over them. Path links between pairs of ranks are in path_links.h.
//
//   star        uplink, downlink
//   leaf_spine  uplink, leaf > spine, spine > leaf, downlink; within a leaf: uplink, downlink
//   fat_tree    uplink, edge > agg, agg > core, core > agg, agg > edge, downlink; within a pod:
//               without the core; within an edge switch: uplink, downlink
//   regions     uplink, region > region, downlink; within a region its link to itself
//   ring        neighbour to neighbour, the shorter way round, rising if both ways are as long
//   mesh, pair  none
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim {

using LinkId = std::uint32_t;
inline constexpr LinkId kArrived = UINT32_MAX;

// A set of ranks, one flag per rank.
using RankFlags = std::vector<bool>;

class Wiring {
 public:
  static Result<Wiring> make(const scenario::Scenario& scenario);

  std::uint32_t links() const { return links_; }

  // Returns the link that a packet takes after `hop` links; kArrived after the last.
  LinkId next(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const;

  std::string name(LinkId link) const;

  // Adds the links of `tier` that packets from a rank of `from` to a rank of `to` may take. Some
  // links may be added twice. All links of a ring have tier `path`, because a ring has no path
  // links besides them.
  void choose(scenario::Link::Tier tier, const RankFlags& from, const RankFlags& to,
              std::vector<LinkId>& links) const;

  // Returns the delay that the topology itself gives a link between regions, without link rules.
  // Returns 0 for other links.
  std::int64_t base_delay_ns(LinkId link) const;

  bool is_ring() const { return kind_ == scenario::Topology::kRing; }
  bool has_uplinks() const { return fabric_ > 0 && !is_ring(); }

  // Leaves, spines and the links between them, for Topology, which sets these links' rates from the
  // uplinks of a leaf's hosts.
  std::uint32_t leaves() const { return kind_ == scenario::Topology::kLeafSpine ? units_ : 0; }
  std::uint32_t spines() const { return width_; }
  LinkId leaf_to_spine(std::uint32_t leaf, std::uint32_t spine) const {
    return level(0, leaf, spine);
  }
  LinkId spine_to_leaf(std::uint32_t spine, std::uint32_t leaf) const {
    return level(1, leaf, spine);
  }
  LinkId uplink(std::uint32_t rank) const { return rank; }

 private:
  // Where a rank is connected: its leaf, edge switch or region, and the pod of an edge switch.
  struct Place {
    std::uint32_t unit = 0;
    std::uint32_t pod = 0;
  };

  void wire_units(std::uint32_t hosts_per_unit);
  Status wire_regions(const scenario::Scenario& scenario);
  std::uint32_t count_fabric() const;

  LinkId next_of_ring(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const;
  std::uint32_t fabric_hops(Place from, Place to) const;
  LinkId fabric_link(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const;
  LinkId fat_tree_link(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const;

  // Returns a link of a fabric. A leaf-spine fabric has two levels of links (up, down), a fat tree
  // four; a level has units_ * width_ links. `unit` is a leaf, edge or aggregation switch, `port`
  // one of its links at that level.
  LinkId level(std::uint32_t number, std::uint32_t unit, std::uint32_t port) const {
    return fabric_ + (number * units_ + unit) * width_ + port;
  }

  std::string fabric_name(std::uint32_t index) const;
  void choose_neighbours(const RankFlags& from, const RankFlags& to,
                         std::vector<LinkId>& links) const;
  void choose_fabric(const RankFlags& from, const RankFlags& to, std::vector<LinkId>& links) const;
  struct FabricUse {  // by unit and by pod: whether packets leave it, or come into it
    std::vector<bool> unit_out, unit_in, pod_out, pod_in;
  };
  void use_fabric(Place from, Place to, FabricUse& use) const;
  void choose_used(const FabricUse& use, std::vector<LinkId>& links) const;

  scenario::Topology::KindCase kind_ = scenario::Topology::KIND_NOT_SET;
  std::uint32_t ranks_ = 0;
  std::uint32_t links_ = 0;
  LinkId fabric_ = 0;                         // the first link of the fabric
  std::vector<Place> place_;                  // by rank
  std::uint32_t units_ = 0;                   // leaves, edge switches or regions
  std::uint32_t width_ = 0;                   // spines; half of a fat tree's k
  std::vector<std::string> names_;            // names of regions
  std::vector<std::int64_t> base_delays_ns_;  // delays of the links between regions
};

}  // namespace leeway::sim
