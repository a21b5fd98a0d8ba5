// A scenario's link rules, and the properties that links get from them.
//
// Rules apply in the order of the file. A later rule replaces only the settings that it has. A rule
// that sets losses also decides whether links lose packets together: with shared_fate its links
// share one loss model, else each link has its own. A rule with shared_fate but no losses makes
// links share the losses that they have already, if these come from the same rule.
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

// For each setting of a link, the number of the last rule that gives the setting.
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
  // rate from the topology if no rule sets one; 0 if unlimited
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

  // `scenario` must outlive the rules.
  static Result<LinkRules> make(const scenario::Scenario& scenario);

  const std::vector<Rule>& all() const { return rules_; }
  std::vector<Rule> of_tier(scenario::Link::Tier tier) const;

  void apply(const Rule& rule, LinkSettings& settings) const;

 private:
  const scenario::Scenario* scenario_ = nullptr;
  std::vector<Rule> rules_;
};

// All different properties of links, each kept once.
class PropertyPool {
 public:
  explicit PropertyPool(const scenario::Scenario& scenario) : scenario_(&scenario) {}

  // Returns the index of these settings' properties. Refuses settings that no link can have, naming
  // their rules.
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
