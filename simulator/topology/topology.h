// The links of a network, what they do to packets, and which of them lie between two ranks.
//
// A topology is made from a scenario's topology and link rules, and has no state of a run. Links
// are numbered. The way of a packet is computed hop by hop instead of stored for all pairs, so a
// thousand ranks need only a few thousand links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "topology/link_properties.h"
#include "topology/path_links.h"
#include "topology/wiring.h"

namespace leeway::sim {

class Topology {
 public:
  // `scenario` must be valid (scenario/validate.h). make() reads the files that it names; an error
  // names the file.
  static Result<Topology> make(const scenario::Scenario& scenario);

  std::uint32_t ranks() const { return ranks_; }
  std::size_t links() const;

  // Returns the link that a packet takes after `hop` links, or kArrived after the last. A hash of
  // the pair chooses among paths of equal cost, so packets of a pair stay on one path.
  LinkId next_link(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const {
    if (paths_.any() && paths_.properties(from, to) != PathLinks::kNone) {
      if (hop == 0) return wiring_.links() + from * ranks_ + to;
      --hop;
    }
    return wiring_.next(from, to, hop);
  }

  // Returns the link that is the first for all packets of `rank`, or kArrived if there is no such
  // link (mesh, ring). Endpoints wait while this link's queue is full (Network::waiting_bytes),
  // because a host does not drop its own packets.
  LinkId uplink(std::uint32_t rank) const {
    return wiring_.has_uplinks() ? wiring_.uplink(rank) : kArrived;
  }

  // Links with equal properties share one object. If `link` is the number of a pair without a path
  // link, returns the properties of a link that no rule chooses.
  const LinkProperties& properties(LinkId link) const;
  // Returns the index of the link's properties, below properties_count().
  std::uint32_t properties_index(LinkId link) const;
  std::size_t properties_count() const { return properties_.size(); }

  std::string name(LinkId link) const;  // "0>1", "uplink 3", "leaf 2>spine 1", "eu>us"

  // Returns the round trip time on an empty network: typical delays both ways, without queues and
  // serialisation. Endpoints start their timers from it.
  std::int64_t round_trip_ns(std::uint32_t from, std::uint32_t to) const;
  // Returns the rate of the slowest link on the way, or 0 if all links on the way are unlimited.
  std::uint64_t bits_per_second(std::uint32_t from, std::uint32_t to) const;

 private:
  Status wire(const scenario::Scenario& scenario, const LinkRules& rules, PropertyPool& pool);
  std::int64_t one_way_ns(std::uint32_t from, std::uint32_t to) const;

  std::uint32_t ranks_ = 0;
  Wiring wiring_;    // the first links
  PathLinks paths_;  // the further ones, by from * ranks + to
  std::vector<std::uint32_t> properties_of_wiring_;
  std::vector<LinkProperties> properties_;
  std::vector<std::int64_t> typical_delays_ns_;  // typical delay of each of properties_
};

}  // namespace leeway::sim
