#include "checker/network_traits.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace leeway::sim {
namespace {

using scenario::Operation;
using scenario::Scenario;

bool keeps_order(const scenario::Delay& delay) {
  return delay.keep_order() || delay.kind_case() == scenario::Delay::kFixed ||
         delay.kind_case() == scenario::Delay::KIND_NOT_SET;
}

// Returns true if the model loses each packet independently. Any model but `random` counts as
// dependent, also one that is added later.
bool is_random(const scenario::Loss& loss) {
  std::vector<const google::protobuf::FieldDescriptor*> models;
  loss.GetReflection()->ListFields(loss, &models);
  const bool other = std::ranges::any_of(models, [](const auto* model) {
    return model->number() != scenario::Loss::kRandomFieldNumber;
  });
  return !other && loss.random().correlation() == 0;
}

bool loses_in_bursts(const scenario::Link& link) {
  const scenario::Loss& loss = link.loss();
  return loss.has_bursts() || loss.has_gilbert_elliott() || loss.has_four_state();
}

bool is_for_all(const scenario::Link& link) {
  return !link.has_between() && link.from() == "*" && link.to() == "*" &&
         link.tier() == scenario::Link::path;
}

}  // namespace

bool keeps_order(const Scenario& scenario) {
  if (scenario.pause_size() > 0 || scenario.operation().has_inject()) return false;
  // A multicast packet may overtake a unicast packet.
  if (scenario.has_multicast()) return false;
  for (const scenario::Link& link : scenario.link()) {
    if (link.has_reorder() || !keeps_order(link.delay_ms())) return false;
  }
  return true;
}

bool has_outages(const Scenario& scenario) {
  const auto goes_down = [](const scenario::Link& link) { return link.loss().window_size() > 0; };
  return scenario.partition_size() > 0 || scenario.address_change_size() > 0 ||
         scenario.translator_size() > 0 || scenario.operation().has_inject() ||
         std::any_of(scenario.link().begin(), scenario.link().end(), goes_down);
}

bool may_silence(const Scenario& scenario) {
  return has_outages(scenario) || may_lose_goodbyes(scenario);
}

bool may_lose_goodbyes(const Scenario& scenario) {
  if (std::any_of(scenario.link().begin(), scenario.link().end(), loses_in_bursts)) return true;
  const bool is_ring = scenario.topology().kind_case() == scenario::Topology::kRing;
  const double hops = is_ring ? std::max(1.0, scenario.ranks() / 2.0) : 1.0;
  double arrives = 1.0;
  for (const scenario::Link& link : scenario.link())
    arrives *= std::pow(1.0 - link.loss().random().p(), hops);
  return arrives < 1.0 / 3.0;
}

bool has_alike_contributions(const Scenario& scenario) {
  const Operation& operation = scenario.operation();
  if (operation.owner_weights() || operation.error_feedback() || operation.non_finite() > 0)
    return false;
  if (scenario.compute_size() > 0 || operation.codec().find("nearest") != std::string::npos)
    return false;
  const scenario::Workload& workload = scenario.workload();
  return workload.kind_case() == scenario::Workload::KIND_NOT_SET ||
         (workload.has_synthetic() && workload.synthetic().rank_deviation() == 0);
}

bool is_unbiased(const Scenario& scenario) {
  const Operation& operation = scenario.operation();
  if (operation.codec() != "fp32" || operation.has_spread_codec()) return false;
  if (operation.delivery().kind() != scenario::Delivery::best_effort) return false;
  if (operation.owner_weights() || operation.non_finite() > 0) return false;
  if (operation.has_inject() || scenario.pause_size() + scenario.crash_size() > 0) return false;
  if (scenario.partition_size() > 0 || scenario.cross_traffic_size() > 0) return false;
  if (scenario.narrow_size() > 0) return false;
  const Operation::Estimator estimator = operation.estimator();
  const bool on_any_links =
      estimator == Operation::horvitz_thompson || estimator == Operation::augmented;
  const bool on_equal_links =
      estimator == Operation::symmetric_ratio || estimator == Operation::stratified;
  int lossy = 0;
  for (const scenario::Link& link : scenario.link()) {
    if (link.has_queue() || link.has_rate_mbps() || link.has_corrupt() || link.shared_fate())
      return false;
    if (!link.has_loss()) continue;
    if (!is_random(link.loss())) return false;
    if (on_equal_links && !is_for_all(link)) return false;
    ++lossy;
  }
  return lossy == 1 && (on_any_links || on_equal_links);
}

}  // namespace leeway::sim
