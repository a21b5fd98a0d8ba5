#include "swarm/draw.h"

#include <algorithm>

#include "scenario/rank_set.h"
#include "swarm/draw_parts.h"

namespace leeway::sim::swarm {
namespace {

using scenario::Delivery;
using scenario::Operation;
using scenario::Scenario;

// Returns true if the operation has a delivery class that does not repair every loss.
bool is_lossy(const Operation& operation) {
  if (operation.kind() == Operation::replica_step &&
      operation.replica().delivery() != Delivery::exact) {
    return true;
  }
  return operation.delivery().kind() != Delivery::exact ||
         (operation.kind() == Operation::all_reduce && operation.spread() != Delivery::exact);
}

// Returns true if some ranks may only send in a round.
bool has_senders_only(const Operation& operation) {
  const Operation::Kind kind = operation.kind();
  return kind == Operation::broadcast || kind == Operation::gather || kind == Operation::scatter ||
         kind == Operation::reduce || kind == Operation::messages || operation.messages_first() > 0;
}

bool leaves_early(const Scenario& scenario) {
  return std::any_of(scenario.leave().begin(), scenario.leave().end(),
                     [](const scenario::Leave& leave) { return leave.has_from_round(); });
}

// Returns the time that a call with deadline kPatientMs has for its data. In a call by sites, the
// first hop of a lossy call gets a quarter of the deadline.
double patience_ms(const Operation& operation) {
  return operation.site_ranks() > 0 ? kPatientMs / 4 : kPatientMs;
}

bool is_patient(const Operation& operation) {
  if (operation.kind() == Operation::replica_step &&
      operation.replica().deadline_ms() < kPatientMs) {
    return false;
  }
  return operation.delivery().deadline_ms() >= kPatientMs;
}

// Returns true if links may lose packets even in the calm (the last rounds, without faults),
// because full queues drop them or jitter makes them late.
bool loses_in_calm(const Scenario& scenario) {
  for (const scenario::Link& link : scenario.link()) {
    if (link.has_rate_mbps()) return true;
    if (link.has_delay_ms() && !link.delay_ms().has_fixed() && !link.delay_ms().keep_order())
      return true;
  }
  return false;
}

double mean_of(const scenario::Delay& delay) {
  switch (delay.kind_case()) {
    case scenario::Delay::kFixed:
      return delay.fixed();
    case scenario::Delay::kUniform:
      return delay.uniform().to();
    case scenario::Delay::kNormal:
      return delay.normal().mean();
    case scenario::Delay::kPareto:
      return delay.pareto().mean();
    case scenario::Delay::kParetoNormal:
      return delay.pareto_normal().mean();
    default:
      return 0.0;
  }
}

// Returns true if two ranks have no path to each other and need a relay.
bool has_relays(const Scenario& scenario) {
  return std::any_of(scenario.translator().begin(), scenario.translator().end(),
                     [](const auto& translator) { return translator.symmetric(); });
}

// Returns the longest round trip time between two ranks. A relay doubles it.
double round_trip_ms(const Scenario& scenario) {
  double link_ms = 0.0;
  for (const scenario::Link& link : scenario.link())
    link_ms = std::max(link_ms, mean_of(link.delay_ms()));
  const scenario::Topology& topology = scenario.topology();
  double regions_ms = 0.0;
  for (const double rtt_ms : topology.regions().rtt_ms()) regions_ms = std::max(regions_ms, rtt_ms);
  const double direct_ms =
      regions_ms + 2.0 * link_ms * (topology.has_ring() ? scenario.ranks() - 1 : 1);
  return has_relays(scenario) ? 2.0 * direct_ms : direct_ms;
}

// Returns how many bytes a rank can send to another rank in one round trip. With pacing, the result
// is the credit window. Without pacing, the result is also at most what the shortest queue accepts
// of a burst.
double bytes_at_once(const Scenario& scenario) {
  const Operation& operation = scenario.operation();
  double bytes = static_cast<double>(operation.socket_bytes()) / (scenario.ranks() - 1);
  if (operation.has_window_bytes()) bytes = std::min<double>(bytes, operation.window_bytes());
  if (scenario.has_congestion()) return bytes;
  for (const scenario::Link& link : scenario.link()) {
    if (!link.has_rate_mbps()) continue;
    const scenario::Queue& queue = link.queue();
    const auto room = queue.has_red() ? queue.red().max_bytes() : queue.bytes();
    bytes = std::min(bytes, static_cast<double>(room));
  }
  return bytes;
}

// Returns true if half of the deadline is enough for the data that a rank sends in a round, even if
// all of it goes to one rank. The other half is for losses: a full queue drops the end of a burst,
// so the next burst begins only after two round trips.
bool fits_deadline(const Scenario& scenario, double deadline_ms) {
  const Operation& operation = scenario.operation();
  const double messages = operation.kind() == Operation::messages
                              ? operation.messages_max()
                              : 1.0 + operation.messages_first();
  double bytes = messages * static_cast<double>(operation.bytes());
  for (const scenario::Communicator& further : scenario.communicator()) {
    const Operation& own = further.operation();
    bytes += static_cast<double>(own.bytes()) *
             (own.kind() == Operation::messages ? own.messages_max() : 1.0);
  }
  return bytes / bytes_at_once(scenario) * round_trip_ms(scenario) <= deadline_ms / 2;
}

// Returns true if some rank is behind no symmetric translator, so that it can relay for the ranks
// behind such translators.
bool somebody_relays(const Scenario& scenario) {
  for (const scenario::Translator& translator : scenario.translator()) {
    const auto ranks = scenario::ranks_of(scenario, translator.ranks());
    if (translator.symmetric() && ranks.ok() && ranks->size() >= scenario.ranks()) return false;
  }
  return true;
}

// Values of Dice's `part`.
constexpr std::uint64_t kSitesPart = 1;
constexpr std::uint64_t kLanesPart = 2;
constexpr std::uint64_t kLongFlowsPart = 3;
constexpr std::uint64_t kOneHostPart = 4;
constexpr std::uint64_t kRelaySharePart = 5;
constexpr std::uint64_t kManyTagsPart = 6;

}  // namespace

bool may_be_given_up(const Scenario& scenario) {
  double stopped_ms = 0.0;
  for (const scenario::Pause& pause : scenario.pause()) stopped_ms += pause.for_ms();
  const double patience_ms = scenario.operation().peer_timeout_ms();
  return patience_ms > 0 && 4 * stopped_ms >= patience_ms;
}

bool promises_recovery(const Scenario& scenario) {
  if (scenario.crash_size() > 0 || !is_patient(scenario.operation())) return false;
  if (may_be_given_up(scenario) || !somebody_relays(scenario)) return false;
  if (!scenario.has_calm_from_round() || leaves_early(scenario)) return false;
  // A rank that only sends does not wait for others. If such a rank was cut off for several
  // deadlines, its peer has already given up on rounds that the rank sends later.
  const bool cuts_off = scenario.partition_size() > 0 || scenario.address_change_size() > 0 ||
                        scenario.translator_size() > 0;
  if (has_senders_only(scenario.operation()) && cuts_off) return false;
  if (!fits_deadline(scenario, patience_ms(scenario.operation()))) return false;
  if (!is_lossy(scenario.operation())) return true;
  // Lossy rounds may end before two ranks without a path have found a relay.
  if (has_relays(scenario)) return false;
  // A path counts as narrow only after three losses. Short lossy rounds before that stay
  // incomplete.
  if (scenario.narrow_size() > 0) return false;
  // The sender notices only at a full window that multicast no longer arrives. Lossy rounds before
  // that stay incomplete.
  return !loses_in_calm(scenario) && !scenario.multicast().has_until_round();
}

namespace {

// Skips I9 (rounds are complete in the calm) for communicators whose deadline is too short for the
// data of all communicators on their shared paths.
void excuse_short_deadlines(Scenario& scenario) {
  for (scenario::Communicator& communicator : *scenario.mutable_communicator()) {
    if (fits_deadline(scenario, communicator.operation().delivery().deadline_ms())) continue;
    const auto& skipped = communicator.checkers().skip();
    if (std::find(skipped.begin(), skipped.end(), "i9") == skipped.end())
      communicator.mutable_checkers()->add_skip("i9");
  }
}

}  // namespace

void draw_size(Dice& dice, Scenario& scenario) {
  const bool many = dice.one_in(300);
  scenario.set_ranks(many ? 64 : dice.between(2, dice.one_in(3) ? 16 : 7));
  const std::uint32_t rough = dice.between(1, 12 - kCalmRounds);
  scenario.set_calm_from_round(rough);
  scenario.set_rounds(rough + kCalmRounds);
}

Scenario draw_scenario(std::uint64_t seed) {
  Dice dice(seed);
  Scenario scenario;
  draw_size(dice, scenario);
  draw_operation(dice, scenario);
  draw_network(dice, scenario);
  draw_faults(dice, scenario);
  draw_leaves(dice, scenario);
  draw_shapes(dice, scenario);
  draw_communicators(dice, scenario);
  draw_congestion(dice, scenario);
  draw_sealing(dice, scenario);
  draw_addresses(dice, scenario);
  draw_narrow(dice, scenario);
  draw_spoiled(dice, scenario);
  draw_symmetric(dice, scenario);
  draw_messages_first(dice, scenario);
  Dice long_flows(seed, kLongFlowsPart);
  draw_long_flows(long_flows, scenario);
  Dice sites(seed, kSitesPart);
  draw_sites(sites, scenario);
  Dice lanes(seed, kLanesPart);
  draw_lanes(lanes, scenario);
  Dice one_host(seed, kOneHostPart);
  if (one_host.one_in(2)) scenario.mutable_operation()->set_one_host(true);
  Dice relays(seed, kRelaySharePart);
  draw_relay_share(relays, scenario);
  Dice many_tags(seed, kManyTagsPart);
  draw_many_tags(many_tags, scenario);
  excuse_short_deadlines(scenario);
  if (!promises_recovery(scenario)) scenario.mutable_checkers()->add_skip("i9");
  scenario.mutable_checkers()->add_skip("i10");
  scenario.mutable_checkers()->add_skip("i20");
  return scenario;
}

}  // namespace leeway::sim::swarm
