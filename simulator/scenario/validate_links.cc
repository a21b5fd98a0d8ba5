// Rules about links and topologies.
#include <algorithm>
#include <string>
#include <vector>

#include "scenario/field_limits.h"
#include "scenario/rank_set.h"
#include "scenario/validate.h"

namespace leeway::sim::scenario {
namespace {

// A link rule's path, and the places in the file, for error messages.
struct Rule {
  std::string path;
  const Places& places;

  Status refuse(const std::string& field, const std::string& why) const {
    return places.refuse(path + "." + field, why);
  }
};

Status check_delay(const Delay& delay, const Rule& rule) {
  if (delay.kind_case() == Delay::KIND_NOT_SET) {
    return rule.refuse("delay_ms",
                       "has no kind; give fixed, uniform, normal, pareto, pareto_normal, "
                       "table or trace");
  }
  const Delay::Uniform& uniform = delay.uniform();
  if (delay.has_uniform() && uniform.from() > uniform.to()) {
    return rule.refuse("delay_ms.uniform.to", "is " + number_text(uniform.to()) +
                                                  "; allowed is from, " +
                                                  number_text(uniform.from()) + ", and above");
  }
  return {};
}

Status check_queue(const Queue& queue, const Rule& rule) {
  if (queue.has_ecn_at() && queue.ecn_at() > queue.bytes()) {
    return rule.refuse("queue.ecn_at", "is " + std::to_string(queue.ecn_at()) +
                                           "; allowed is 1 to the queue's bytes, " +
                                           std::to_string(queue.bytes()));
  }
  if (queue.has_ecn_at() && queue.has_red()) {
    return rule.refuse("queue.red", "cannot be combined with ecn_at");
  }
  if (queue.has_trim() && queue.has_codel()) {
    return rule.refuse("queue.trim", "cannot be combined with codel");
  }
  const Queue::Red& red = queue.red();
  if (!queue.has_red() || red.min_bytes() <= red.max_bytes()) return {};
  return rule.refuse("queue.red.max_bytes", "is " + std::to_string(red.max_bytes()) +
                                                "; allowed is min_bytes, " +
                                                std::to_string(red.min_bytes()) + ", and above");
}

// Checks the probabilities of the two transitions out of one state. Their sum must be at most 1.
Status check_exits(const std::string& field, double first, double second, const Rule& rule) {
  if (first + second <= 1) return {};
  return rule.refuse("loss.four_state." + field, "is " + number_text(second) +
                                                     "; allowed is 0 to " + number_text(1 - first) +
                                                     ", what the state's other exit leaves");
}

Status check_windows(const Loss& loss, const Rule& rule) {
  double free_from = 0.0;  // the end of the previous window
  for (int i = 0; i < loss.window_size(); ++i) {
    const std::string path = "loss.window[" + std::to_string(i) + "]";
    const double from = loss.window(i).from_ms(), to = loss.window(i).to_ms();
    if (from < free_from) {
      return rule.refuse(path + ".from_ms", "is " + number_text(from) +
                                                "; allowed is the end of the window before, " +
                                                number_text(free_from) + ", and above");
    }
    if (to <= from) {
      return rule.refuse(path + ".to_ms", "is " + number_text(to) + "; allowed is above from_ms, " +
                                              number_text(from));
    }
    free_from = to;
  }
  return {};
}

Status check_loss(const Loss& loss, const Rule& rule) {
  const Loss::FourState& four = loss.four_state();
  if (const Status s = check_exits("p32", four.p31(), four.p32(), rule); !s.ok()) return s;
  if (const Status s = check_exits("p14", four.p13(), four.p14(), rule); !s.ok()) return s;
  for (int i = 1; i < loss.list().index_size(); ++i) {
    if (loss.list().index(i - 1) < loss.list().index(i)) continue;
    return rule.refuse(
        "loss.list.index[" + std::to_string(i) + "]",
        "is " + std::to_string(loss.list().index(i)) + "; the numbers of a list rise");
  }
  return check_windows(loss, rule);
}

bool has_switches(Topology::KindCase kind) {
  return kind == Topology::kStar || kind == Topology::kLeafSpine || kind == Topology::kFatTree ||
         kind == Topology::kRegions;
}

// Checks that the topology has links of this tier.
Status check_tier(const Link& link, Topology::KindCase topology, const Rule& rule) {
  if (link.tier() == Link::path) return {};
  if (!has_switches(topology)) {
    return rule.refuse("tier", "is " + Link::Tier_Name(link.tier()) +
                                   "; this topology has no switches, only path");
  }
  if (link.tier() != Link::fabric || topology != Topology::kStar) return {};
  return rule.refuse("tier", "is fabric; a star has one switch, so uplink and downlink only");
}

Status check_link(const Link& link, Topology::KindCase topology, const Rule& rule) {
  if (const Status s = check_tier(link, topology, rule); !s.ok()) return s;
  if (link.has_rate_mbps() && link.has_deliveries()) {
    return rule.refuse("deliveries", "cannot be combined with rate_mbps");
  }
  if (link.has_delay_ms()) {
    if (const Status s = check_delay(link.delay_ms(), rule); !s.ok()) return s;
  }
  if (const Status s = check_queue(link.queue(), rule); !s.ok()) return s;
  return check_loss(link.loss(), rule);
}

Status check_rtts(const Topology::Regions& regions, const Places& places) {
  const int n = regions.names_size();
  if (regions.rtt_ms_size() != n * n) {
    return places.refuse("topology.regions.rtt_ms", "has " + std::to_string(regions.rtt_ms_size()) +
                                                        " numbers; " + std::to_string(n) +
                                                        " regions need " + std::to_string(n * n));
  }
  for (int i = 0; i < n * n; ++i) {
    const int mirrored = i % n * n + i / n;
    if (regions.rtt_ms(i) == regions.rtt_ms(mirrored)) continue;
    return places.refuse("topology.regions.rtt_ms",
                         "is not symmetric: from " + regions.names(i / n) + " to " +
                             regions.names(i % n) + " " + number_text(regions.rtt_ms(i)) +
                             ", back " + number_text(regions.rtt_ms(mirrored)));
  }
  return {};
}

Status check_regions(const Scenario& scenario, const Places& places) {
  const Topology::Regions& regions = scenario.topology().regions();
  std::vector<int> times(scenario.ranks(), 0);
  for (int i = 0; i < regions.names_size(); ++i) {
    const auto ranks = ranks_of(scenario, regions.names(i));
    const std::string path = "topology.regions.names[" + std::to_string(i) + "]";
    if (!ranks.ok()) return places.refuse(path, "is wrong: " + std::string(ranks.status().text()));
    for (const std::uint32_t rank : *ranks) ++times[rank];
  }
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    if (times[rank] == 1) continue;
    return places.refuse("topology.regions.names", "put rank " + std::to_string(rank) + " into " +
                                                       std::to_string(times[rank]) +
                                                       " regions; allowed is one");
  }
  return check_rtts(regions, places);
}

Status check_fat_tree(const Scenario& scenario, const Places& places) {
  const std::uint32_t k = scenario.topology().fat_tree().k();
  const std::string value = "is " + std::to_string(k);
  if (k % 2 != 0) return places.refuse("topology.fat_tree.k", value + "; allowed are even numbers");
  const std::uint32_t hosts = k * k * k / 4;
  if (hosts >= scenario.ranks()) return {};
  return places.refuse("topology.fat_tree.k", value + ", which is " + std::to_string(hosts) +
                                                  " hosts for " + std::to_string(scenario.ranks()) +
                                                  " ranks");
}

Status check_leaf_spine(const Scenario& scenario, const Places& places) {
  constexpr std::uint32_t kPairsMax = 1 << 20;
  const Topology::LeafSpine& options = scenario.topology().leaf_spine();
  const std::uint32_t hosts = options.hosts_per_leaf();
  const std::uint32_t leaves = (scenario.ranks() + hosts - 1) / hosts;
  if (options.spines() <= kPairsMax / leaves) return {};
  return places.refuse("topology.leaf_spine.spines",
                       "is " + std::to_string(options.spines()) + "; allowed with " +
                           std::to_string(leaves) + " leaves is 1 to " +
                           std::to_string(kPairsMax / leaves));
}

Status check_topology(const Scenario& scenario, const Places& places) {
  switch (scenario.topology().kind_case()) {
    case Topology::kPair:
      if (scenario.ranks() == 2) return {};
      return places.refuse("topology.pair",
                           "has 2 ranks, the scenario " + std::to_string(scenario.ranks()));
    case Topology::kLeafSpine:
      return check_leaf_spine(scenario, places);
    case Topology::kFatTree:
      return check_fat_tree(scenario, places);
    case Topology::kRegions:
      return check_regions(scenario, places);
    case Topology::KIND_NOT_SET:
      if (!scenario.has_topology()) return {};
      return places.refuse("topology", "is empty; say which, such as star {}");
    default:
      return {};
  }
}

// Checks that a rule in a ring chooses at least one link. A ring has links between neighbours only.
Status check_ring_link(const Scenario& scenario, const Link& link, const Rule& rule) {
  const auto first = ranks_of(scenario, link.has_between() ? link.between() : link.from());
  const auto second = ranks_of(scenario, link.has_between() ? link.and_() : link.to());
  if (!first.ok() || !second.ok()) return {};  // an error in the selectors was reported before
  const std::uint32_t count = scenario.ranks();
  for (const std::uint32_t rank : *first) {
    for (const std::uint32_t step : {1u, count - 1}) {
      const std::uint32_t neighbour = (rank + step) % count;
      if (std::binary_search(second->begin(), second->end(), neighbour)) return {};
    }
  }
  return rule.refuse(link.has_between() ? "and" : "to",
                     "chooses no neighbour of the rule's other ranks; in a ring only neighbours "
                     "have links");
}

}  // namespace

Status check_links(const Scenario& scenario, const Places& places) {
  if (const Status s = check_topology(scenario, places); !s.ok()) return s;
  for (int i = 0; i < scenario.link_size(); ++i) {
    const Rule rule{"link[" + std::to_string(i) + "]", places};
    const Status s = check_link(scenario.link(i), scenario.topology().kind_case(), rule);
    if (!s.ok()) return s;
    if (!scenario.topology().has_ring()) continue;
    if (const Status r = check_ring_link(scenario, scenario.link(i), rule); !r.ok()) return r;
  }
  return {};
}

}  // namespace leeway::sim::scenario
