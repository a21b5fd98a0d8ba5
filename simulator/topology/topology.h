// Which links there are, what they do to packets, and which of them lie between two ranks.
//
// Made of a scenario's topology and link rules; holds no state of a run. Links are numbered; the
// way of a packet is asked for hop by hop, so that no table of all pairs is kept and a thousand
// ranks cost a few thousand links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leeway/status.h"
#include "leeway/types.h"
#include "link/delay_model.h"
#include "link/loss_options.h"
#include "link/queue_options.h"
#include "scenario.pb.h"

namespace leeway::sim {

using LinkId = std::uint32_t;
inline constexpr LinkId kArrived = UINT32_MAX;

// What one link does. All of it is optional: a link without any delivers at once.
struct LinkProperties {
  bool limited = false;  // has a rate, and therefore a queue
  QueueOptions queue;
  std::vector<LossOptions> losses;   // lost if any of them says so
  std::vector<DelayOptions> delays;  // added up; the base delay of a region is one of them
  double duplicate = 0;
  double reorder = 0;
  std::int64_t reorder_by_ns = 0;
  double corrupt = 0;
  // Links with the same number here ask one and the same loss model, in the order of sending.
  // kOwnFate: its own.
  static constexpr std::uint32_t kOwnFate = UINT32_MAX;
  std::uint32_t fate = kOwnFate;
};

class Topology {
 public:
  // The scenario is valid (scenario/validate.h). Files it refers to are read here; an error names
  // the file.
  static Result<Topology> make(const scenario::Scenario& scenario);

  std::uint32_t ranks() const;
  std::size_t links() const;

  // The link that a packet from `from` to `to` takes after `hop` links; kArrived after the last.
  // Equal-cost paths are chosen by a hash of the pair, so that the packets of a pair stay on one
  // path.
  LinkId next_link(std::uint32_t from, std::uint32_t to, std::uint32_t hop) const;

  // The link on which everything that `rank` sends leaves it; kArrived where its ways out have none
  // in common (mesh, ring). A host does not lose its own packets there: its socket makes it wait
  // (Network::waiting_bytes).
  LinkId uplink(std::uint32_t rank) const;

  const LinkProperties& properties(LinkId link) const;  // links of equal properties share one
  std::string name(LinkId link) const;  // "0>1", "uplink 3", "leaf 2>spine 1", "eu>us"

  // Sum of the base delays of the way there and back, without jitter, queues and serialisation:
  // what a round trip takes on an empty network. Endpoints start their timers from it.
  std::int64_t round_trip_ns(std::uint32_t from, std::uint32_t to) const;
  // Rate of the slowest link on the way; 0: unlimited.
  std::uint64_t bits_per_second(std::uint32_t from, std::uint32_t to) const;
};

}  // namespace leeway::sim
