#include "topology/wiring.h"

#include "base/contracts.h"
#include "scenario/rank_set.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

// Returns which of `ways` equal ways the packets of a pair take, by SplitMix64's hash.
std::uint32_t pick(std::uint32_t from, std::uint32_t to, std::uint32_t ways) {
  std::uint64_t h = (std::uint64_t{from} << 32 | to) + 0x9e3779b97f4a7c15;
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
  h = (h ^ h >> 27) * 0x94d049bb133111eb;
  h ^= h >> 31;
  return static_cast<std::uint32_t>((h >> 32) * ways >> 32);
}

}  // namespace

Result<Wiring> Wiring::make(const scenario::Scenario& scenario) {
  Wiring wiring;
  const scenario::Topology& topology = scenario.topology();
  wiring.kind_ = topology.kind_case();
  wiring.ranks_ = scenario.ranks();
  wiring.fabric_ = 2 * wiring.ranks_;
  switch (wiring.kind_) {
    case scenario::Topology::kMesh:
    case scenario::Topology::kPair:
    case scenario::Topology::KIND_NOT_SET:
      wiring.fabric_ = 0;
      break;
    case scenario::Topology::kStar:
    case scenario::Topology::kRing:
      break;
    case scenario::Topology::kLeafSpine:
      wiring.width_ = topology.leaf_spine().spines();
      wiring.wire_units(topology.leaf_spine().hosts_per_leaf());
      break;
    case scenario::Topology::kFatTree:
      wiring.width_ = topology.fat_tree().k() / 2;
      wiring.wire_units(wiring.width_);
      break;
    case scenario::Topology::kRegions:
      if (Status status = wiring.wire_regions(scenario); !status.ok()) return status;
      break;
  }
  wiring.links_ = wiring.fabric_ + wiring.count_fabric();
  return wiring;
}

// Assigns ranks to switches and pods. Only leaves or pods that have ranks get links.
void Wiring::wire_units(std::uint32_t hosts_per_unit) {
  place_.resize(ranks_);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t unit = rank / hosts_per_unit;
    place_[rank] = {unit, unit / width_};
  }
  const bool pods = kind_ == scenario::Topology::kFatTree;
  units_ = pods ? (place_.back().pod + 1) * width_ : place_.back().unit + 1;
}

Status Wiring::wire_regions(const scenario::Scenario& scenario) {
  const scenario::Topology::Regions& regions = scenario.topology().regions();
  place_.resize(ranks_);
  for (const std::string& name : regions.names()) {
    const auto ranks = scenario::ranks_of(scenario, name);
    if (!ranks.ok()) return ranks.status();
    for (const std::uint32_t rank : *ranks) place_[rank].unit = units_;
    names_.push_back(name);
    ++units_;
  }
  for (const double rtt_ms : regions.rtt_ms()) base_delays_ns_.push_back(ns_of_ms(rtt_ms / 2));
  return {};
}

std::uint32_t Wiring::count_fabric() const {
  switch (kind_) {
    case scenario::Topology::kLeafSpine:
      return 2 * units_ * width_;
    case scenario::Topology::kFatTree:
      return 4 * units_ * width_;
    case scenario::Topology::kRegions:
      return units_ * units_;
    default:
      return 0;
  }
}

LinkId Wiring::next(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const {
  if (fabric_ == 0) return kArrived;
  if (is_ring()) return next_of_ring(from, to, hop);
  if (hop == 0) return uplink(from);
  const std::uint32_t between =
      kind_ == scenario::Topology::kStar ? 0 : fabric_hops(place_[from], place_[to]);
  if (hop <= between) return fabric_link(from, to, hop - 1);
  return hop == between + 1 ? ranks_ + to : kArrived;
}

// Link r leads from rank r to the next higher rank. Link ranks_ + r leads from rank r to the next
// lower rank.
LinkId Wiring::next_of_ring(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const {
  const std::uint32_t rising = (to >= from ? to : to + ranks_) - from;
  const std::uint32_t falling = ranks_ - rising;
  if (rising <= falling) {
    if (hop == rising) return kArrived;
    const std::uint32_t at = from + hop;
    return at < ranks_ ? at : at - ranks_;
  }
  if (hop == falling) return kArrived;
  return ranks_ + (from >= hop ? from - hop : from + ranks_ - hop);
}

std::uint32_t Wiring::fabric_hops(Place from, Place to) const {
  if (kind_ == scenario::Topology::kRegions) return 1;
  if (from.unit == to.unit) return 0;
  return kind_ == scenario::Topology::kLeafSpine || from.pod == to.pod ? 2 : 4;
}

LinkId Wiring::fabric_link(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const {
  const std::uint32_t source = place_[from].unit, target = place_[to].unit;
  if (kind_ == scenario::Topology::kRegions) return fabric_ + source * units_ + target;
  if (kind_ == scenario::Topology::kFatTree) return fat_tree_link(from, to, hop);
  const std::uint32_t spine = pick(from, to, width_);
  return hop == 0 ? leaf_to_spine(source, spine) : spine_to_leaf(spine, target);
}

// Aggregation switch a of every pod has links to width_ core switches, from number a * width_ on.
LinkId Wiring::fat_tree_link(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const {
  const Place source = place_[from], target = place_[to];
  const std::uint32_t way = pick(from, to, width_ * width_);
  const std::uint32_t aggregation = way / width_, core = way % width_;
  if (hop == 0) return level(0, source.unit, aggregation);
  const bool last = hop == (source.pod == target.pod ? 1u : 3u);
  if (last) return level(3, target.unit, aggregation);
  if (hop == 1) return level(1, source.pod * width_ + aggregation, core);
  return level(2, target.pod * width_ + aggregation, core);
}

std::int64_t Wiring::base_delay_ns(LinkId link) const {
  if (base_delays_ns_.empty() || link < fabric_) return 0;
  return base_delays_ns_[link - fabric_];
}

std::string Wiring::name(LinkId link) const {
  LEEWAY_ASSERT(link < links_);
  if (is_ring()) {
    const std::uint32_t from = link % ranks_;
    const std::uint32_t to = (link < ranks_ ? from + 1 : from + ranks_ - 1) % ranks_;
    return std::to_string(from) + ">" + std::to_string(to);
  }
  if (link < ranks_) return "uplink " + std::to_string(link);
  if (link < fabric_) return "downlink " + std::to_string(link - ranks_);
  return fabric_name(link - fabric_);
}

std::string Wiring::fabric_name(std::uint32_t index) const {
  if (kind_ == scenario::Topology::kRegions)
    return names_[index / units_] + ">" + names_[index % units_];
  const std::uint32_t number = index / (units_ * width_);
  const std::uint32_t unit = index / width_ % units_, port = index % width_;
  const auto two = [](const char* kind, std::uint32_t a, std::uint32_t b) {
    return kind + std::to_string(a) + "." + std::to_string(b);
  };
  if (kind_ == scenario::Topology::kLeafSpine) {
    const std::string leaf = "leaf " + std::to_string(unit);
    const std::string spine = "spine " + std::to_string(port);
    return number == 0 ? leaf + ">" + spine : spine + ">" + leaf;
  }
  const std::uint32_t pod = unit / width_, in_pod = unit % width_;
  const bool to_edge = number == 0 || number == 3;
  const std::string lower = two(to_edge ? "edge " : "agg ", pod, in_pod);
  const std::string upper =
      to_edge ? two("agg ", pod, port) : "core " + std::to_string(in_pod * width_ + port);
  return number < 2 ? lower + ">" + upper : upper + ">" + lower;
}

}  // namespace leeway::sim
