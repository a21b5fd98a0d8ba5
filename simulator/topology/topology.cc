#include "topology/topology.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

// Returns the rate of a leaf's link to a spine, or 0 if an uplink of the leaf is unlimited. The
// leaf's links to spines together have the sum of its uplinks' rates, divided by the
// oversubscription. An unused port of the leaf counts as an uplink of the mean rate.
std::uint64_t leaf_rate_bps(const scenario::Scenario& scenario,
                            const std::vector<std::uint64_t>& uplinks_bps, std::uint32_t leaf) {
  const scenario::Topology::LeafSpine& options = scenario.topology().leaf_spine();
  const std::size_t first = std::size_t{leaf} * options.hosts_per_leaf();
  const std::size_t end =
      std::min<std::size_t>(first + options.hosts_per_leaf(), uplinks_bps.size());
  double sum = 0;
  for (std::size_t rank = first; rank < end; ++rank) {
    if (uplinks_bps[rank] == 0) return 0;
    sum += static_cast<double>(uplinks_bps[rank]);
  }
  const double full = sum / static_cast<double>(end - first) * options.hosts_per_leaf();
  return static_cast<std::uint64_t>(full / options.oversubscription() / options.spines() + 0.5);
}

void set_leaf_rates(const scenario::Scenario& scenario, const Wiring& wiring,
                    std::vector<LinkSettings>& settings) {
  if (wiring.leaves() == 0) return;
  std::vector<std::uint64_t> uplinks_bps(scenario.ranks(), 0);
  for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
    const std::int32_t rule = settings[wiring.uplink(rank)].line;
    if (rule != LinkSettings::kNoRule && scenario.link(rule).has_rate_mbps()) {
      uplinks_bps[rank] = bps_of_mbps(scenario.link(rule).rate_mbps());
    }
  }
  for (std::uint32_t leaf = 0; leaf < wiring.leaves(); ++leaf) {
    const std::uint64_t rate_bps = leaf_rate_bps(scenario, uplinks_bps, leaf);
    for (std::uint32_t spine = 0; spine < wiring.spines(); ++spine) {
      for (const LinkId link :
           {wiring.leaf_to_spine(leaf, spine), wiring.spine_to_leaf(spine, leaf)}) {
        const bool told = settings[link].line != LinkSettings::kNoRule;
        settings[link].own_rate_bps = told ? 0 : rate_bps;
      }
    }
  }
}

// Index in the PropertyPool of the properties that a link has if no rule chooses the link.
constexpr std::uint32_t kWithoutAny = 0;

bool is_mesh(const scenario::Scenario& scenario) {
  const auto kind = scenario.topology().kind_case();
  return kind == scenario::Topology::kMesh || kind == scenario::Topology::kPair ||
         kind == scenario::Topology::KIND_NOT_SET;
}

}  // namespace

Result<Topology> Topology::make(const scenario::Scenario& scenario) {
  const Result<LinkRules> rules = LinkRules::make(scenario);
  if (!rules.ok()) return rules.status();
  Result<Wiring> wiring = Wiring::make(scenario);
  if (!wiring.ok()) return wiring.status();
  Topology topology;
  topology.ranks_ = scenario.ranks();
  topology.wiring_ = *std::move(wiring);
  PropertyPool pool(scenario);
  LEEWAY_ASSERT(pool.index_of({}).value() == kWithoutAny);
  if (Status status = topology.wire(scenario, *rules, pool); !status.ok()) return status;
  topology.properties_ = pool.take();
  for (const LinkProperties& link : topology.properties_) {
    topology.typical_delays_ns_.push_back(typical_delay_ns(link));
  }
  return topology;
}

// Collects the settings of all links and makes their properties.
Status Topology::wire(const scenario::Scenario& scenario, const LinkRules& rules,
                      PropertyPool& pool) {
  std::vector<LinkSettings> settings(wiring_.links());
  std::vector<LinkId> chosen;
  for (const LinkRules::Rule& rule : rules.all()) {
    chosen.clear();
    for (const auto& [from, to] : rule.directions) wiring_.choose(rule.tier, from, to, chosen);
    for (const LinkId link : chosen) rules.apply(rule, settings[link]);
  }
  set_leaf_rates(scenario, wiring_, settings);
  for (LinkId link = 0; link < wiring_.links(); ++link) {
    settings[link].base_delay_ns = wiring_.base_delay_ns(link);
    const Result<std::uint32_t> index = pool.index_of(settings[link]);
    if (!index.ok()) return index.status();
    properties_of_wiring_.push_back(*index);
  }
  if (wiring_.is_ring()) return {};  // its links stand for the paths
  Result<PathLinks> paths = PathLinks::make(rules, ranks_, is_mesh(scenario), pool);
  if (!paths.ok()) return paths.status();
  paths_ = *std::move(paths);
  return {};
}

std::size_t Topology::links() const {
  return wiring_.links() + (paths_.any() ? std::size_t{ranks_} * ranks_ : 0);
}

std::uint32_t Topology::properties_index(LinkId link) const {
  LEEWAY_ASSERT(link < links());
  if (link < wiring_.links()) return properties_of_wiring_[link];
  const std::uint32_t pair = link - wiring_.links();
  const std::uint32_t index = paths_.properties(pair / ranks_, pair % ranks_);
  return index == PathLinks::kNone ? kWithoutAny : index;
}

const LinkProperties& Topology::properties(LinkId link) const {
  return properties_[properties_index(link)];
}

std::string Topology::name(LinkId link) const {
  LEEWAY_ASSERT(link < links());
  if (link < wiring_.links()) return wiring_.name(link);
  const std::uint32_t pair = link - wiring_.links();
  return std::to_string(pair / ranks_) + ">" + std::to_string(pair % ranks_);
}

std::int64_t Topology::one_way_ns(std::uint32_t from, std::uint32_t to) const {
  std::int64_t sum = 0;
  LinkId link = kArrived;
  for (std::uint32_t hop = 0; (link = next_link(from, to, hop)) != kArrived; ++hop) {
    sum += typical_delays_ns_[properties_index(link)];
  }
  return sum;
}

std::int64_t Topology::round_trip_ns(std::uint32_t from, std::uint32_t to) const {
  return one_way_ns(from, to) + one_way_ns(to, from);
}

std::uint64_t Topology::bits_per_second(std::uint32_t from, std::uint32_t to) const {
  std::uint64_t slowest = 0;
  LinkId link = kArrived;
  for (std::uint32_t hop = 0; (link = next_link(from, to, hop)) != kArrived; ++hop) {
    const std::uint64_t rate = line_rate_bps(properties(link));
    if (rate > 0 && (slowest == 0 || rate < slowest)) slowest = rate;
  }
  return slowest;
}

}  // namespace leeway::sim
