#include "topology/link_rules.h"

#include <algorithm>

#include "scenario/rank_set.h"
#include "scenario/units.h"
#include "topology/link_options.h"

namespace leeway::sim {
namespace {

constexpr std::int32_t kNoRule = LinkSettings::kNoRule;

Result<RankFlags> flags_of(const scenario::Scenario& scenario, const std::string& selector) {
  const auto ranks = scenario::ranks_of(scenario, selector);
  if (!ranks.ok()) return ranks.status();
  RankFlags flags(scenario.ranks(), false);
  for (const std::uint32_t rank : *ranks) flags[rank] = true;
  return flags;
}

Status in_rule(std::int32_t index, const Status& status) {
  if (status.ok()) return status;
  return Status::error(status.code(), "link[%d]: %s", static_cast<int>(index), status.c_str());
}

}  // namespace

Result<LinkRules> LinkRules::make(const scenario::Scenario& scenario) {
  LinkRules rules;
  rules.scenario_ = &scenario;
  for (const scenario::Link& link : scenario.link()) {
    const bool both = link.has_between();
    Result<RankFlags> first = flags_of(scenario, both ? link.between() : link.from());
    if (!first.ok()) return first.status();
    Result<RankFlags> second = flags_of(scenario, both ? link.and_() : link.to());
    if (!second.ok()) return second.status();
    Rule rule{static_cast<std::uint32_t>(rules.rules_.size()), link.tier(), {}};
    rule.directions.emplace_back(*first, *second);
    if (both) rule.directions.emplace_back(*second, *first);
    rules.rules_.push_back(std::move(rule));
  }
  return rules;
}

std::vector<LinkRules::Rule> LinkRules::of_tier(scenario::Link::Tier tier) const {
  std::vector<Rule> chosen;
  for (const Rule& rule : rules_) {
    if (rule.tier == tier) chosen.push_back(rule);
  }
  return chosen;
}

void LinkRules::apply(const Rule& rule, LinkSettings& settings) const {
  const auto index = static_cast<std::int32_t>(rule.index);
  const scenario::Link& link = scenario_->link(index);
  if (link.has_rate_mbps() || link.has_deliveries()) settings.line = index;
  if (link.has_delay_ms()) settings.delay = index;
  if (link.has_queue()) settings.queue = index;
  if (link.has_loss()) settings.loss = index;
  if (link.has_loss() || link.has_shared_fate()) {
    settings.shared_fate = link.shared_fate() ? index : kNoRule;
  }
  if (link.has_duplicate()) settings.duplicate = index;
  if (link.has_reorder()) settings.reorder = index;
  if (link.has_corrupt()) settings.corrupt = index;
}

Result<std::uint32_t> PropertyPool::index_of(const LinkSettings& settings) {
  if (const auto known = indices_.find(settings); known != indices_.end()) return known->second;
  Result<LinkProperties> made = make(settings);
  if (!made.ok()) return made.status();
  properties_.push_back(*std::move(made));
  const auto index = static_cast<std::uint32_t>(properties_.size() - 1);
  indices_.emplace(settings, index);
  return index;
}

Result<LinkProperties> PropertyPool::make(const LinkSettings& settings) {
  LinkProperties link;
  if (Status status = add_queue(settings, link); !status.ok()) return status;
  if (Status status = add_delays(settings, link); !status.ok()) return status;
  if (Status status = add_losses(settings, link); !status.ok()) return status;
  if (settings.duplicate != kNoRule) link.duplicate = rule(settings.duplicate).duplicate().p();
  if (settings.corrupt != kNoRule) link.corrupt = rule(settings.corrupt).corrupt().p();
  if (settings.reorder != kNoRule) {
    link.reorder = rule(settings.reorder).reorder().p();
    link.reorder_by_ns = ns_of_ms(rule(settings.reorder).reorder().by_ms());
  }
  return link;
}

Status PropertyPool::add_queue(const LinkSettings& settings, LinkProperties& link) {
  link.limited = settings.line != kNoRule || settings.own_rate_bps > 0;
  if (!link.limited) return {};
  const bool told = settings.queue != kNoRule;
  link.queue = queue_options(told ? rule(settings.queue).queue() : scenario::Queue());
  if (Status status = add_line(settings, link); !status.ok()) return status;
  return in_rule(std::max(settings.queue, settings.line), check_queue(link.queue));
}

Status PropertyPool::add_line(const LinkSettings& settings, LinkProperties& link) {
  if (settings.line == kNoRule) {
    link.queue.bits_per_second = settings.own_rate_bps;
    return {};
  }
  const scenario::Link& line = rule(settings.line);
  if (!line.has_deliveries()) {
    link.queue.bits_per_second = bps_of_mbps(line.rate_mbps());
    return {};
  }
  std::optional<std::vector<std::int64_t>>& known = options_[settings.line].deliveries_ns;
  if (!known) {
    Result<std::vector<std::int64_t>> made = deliveries_ns(line.deliveries());
    if (!made.ok()) return in_rule(settings.line, made.status());
    known = *std::move(made);
  }
  link.queue.deliveries_ns = *known;
  return {};
}

Status PropertyPool::add_delays(const LinkSettings& settings, LinkProperties& link) {
  if (settings.base_delay_ns > 0) {
    DelayOptions base;
    base.delay_ns = settings.base_delay_ns;
    link.delays.push_back(base);
  }
  if (settings.delay == kNoRule) return {};
  std::optional<DelayOptions>& known = options_[settings.delay].delay;
  if (!known) {
    Result<DelayOptions> made = delay_options(rule(settings.delay).delay_ms());
    if (!made.ok()) return in_rule(settings.delay, made.status());
    if (const Status status = check_delay(*made); !status.ok()) {
      return in_rule(settings.delay, status);
    }
    known = *std::move(made);
  }
  link.delays.push_back(*known);
  return {};
}

Status PropertyPool::add_losses(const LinkSettings& settings, LinkProperties& link) {
  if (settings.loss == kNoRule) return {};
  std::optional<std::vector<LossOptions>>& known = options_[settings.loss].losses;
  if (!known) {
    Result<std::vector<LossOptions>> made = loss_options(rule(settings.loss).loss());
    if (!made.ok()) return in_rule(settings.loss, made.status());
    for (const LossOptions& loss : *made) {
      if (const Status status = check_loss(loss); !status.ok()) {
        return in_rule(settings.loss, status);
      }
    }
    known = *std::move(made);
  }
  link.losses = *known;
  if (settings.shared_fate == kNoRule) return {};
  const auto next = static_cast<std::uint32_t>(fates_.size());
  link.fate = fates_.try_emplace({settings.shared_fate, settings.loss}, next).first->second;
  return {};
}

}  // namespace leeway::sim
