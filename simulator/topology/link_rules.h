// Link rules, and the properties of links that follow from them.
//
// Rules apply in the order of the file, setting by setting; a later one replaces the settings that
// it has. Fate goes with the losses. A rule with losses gives each link its own, unless it says
// shared_fate. shared_fate alone shares the losses that its links have by then, among links that
// have them from the same rule.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "topology/link_properties.h"
#include "topology/wiring.h"

namespace leeway::sim {

// Where each setting of a link comes from: the number of the last rule that has it.
struct LinkSettings {
  static constexpr std::int32_t kNoRule = -1;

  std::int32_t line = kNoRule;  // a rate or deliveries
  std::int32_t delay = kNoRule;
  std::int32_t queue = kNoRule;
  std::int32_t loss = kNoRule;
  std::int32_t shared_fate = kNoRule;
  std::int32_t duplicate = kNoRule;
  std::int32_t reorder = kNoRule;
  std::int32_t corrupt = kNoRule;
  std::int64_t base_delay_ns = 0;  // delay of the topology
  // rate of the topology, where no rule gives one, or 0 if it is unlimited
  std::uint64_t own_rate_bps = 0;

  friend auto operator<=>(const LinkSettings&, const LinkSettings&) = default;
};

class LinkRules {
 public:
  struct Rule {
    std::uint32_t index = 0;
    scenario::Link::Tier tier = scenario::Link::path;
    std::vector<std::pair<RankFlags, RankFlags>> directions;  // one or two: from, to
  };

  // `scenario` outlives the rules.
  static Result<LinkRules> make(const scenario::Scenario& scenario);

  const std::vector<Rule>& all() const { return rules_; }
  std::vector<Rule> of_tier(scenario::Link::Tier tier) const;

  void apply(const Rule& rule, LinkSettings& settings) const;

 private:
  const scenario::Scenario* scenario_ = nullptr;
  std::vector<Rule> rules_;
};

// The different properties of links, each kept once.
class PropertyPool {
 public:
  explicit PropertyPool(const scenario::Scenario& scenario) : scenario_(&scenario) {}

  // Refuses what no link can do, with the numbers of the rules that ask for it.
  Result<std::uint32_t> index_of(const LinkSettings& settings);

  std::vector<LinkProperties> take() { return std::move(properties_); }

 private:
  struct Options {  // options of one rule, made when first needed: files are read once
    std::optional<DelayOptions> delay;
    std::optional<std::vector<LossOptions>> losses;
    std::optional<std::vector<std::int64_t>> deliveries_ns;
  };

  Result<LinkProperties> make(const LinkSettings& settings);
  Status add_line(const LinkSettings& settings, LinkProperties& link);
  Status add_queue(const LinkSettings& settings, LinkProperties& link);
  Status add_delays(const LinkSettings& settings, LinkProperties& link);
  Status add_losses(const LinkSettings& settings, LinkProperties& link);

  const scenario::Link& rule(std::int32_t index) const { return scenario_->link(index); }

  const scenario::Scenario* scenario_;
  std::map<LinkSettings, std::uint32_t> indices_;
  std::map<std::int32_t, Options> options_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> fates_;  // sharing rule, loss rule
  std::vector<LinkProperties> properties_;
};

}  // namespace leeway::sim
