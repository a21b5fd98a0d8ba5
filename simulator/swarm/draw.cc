#include "swarm/draw.h"

#include "swarm/draw_parts.h"

namespace leeway::sim::swarm {
namespace {

using scenario::Delivery;
using scenario::Operation;
using scenario::Scenario;

// A class that does without what is lost.
bool is_lossy(const Operation& operation) {
  if (operation.kind() == Operation::replica_step &&
      operation.replica().delivery() != Delivery::exact) {
    return true;
  }
  return operation.delivery().kind() != Delivery::exact ||
         (operation.kind() == Operation::all_reduce && operation.spread() != Delivery::exact);
}

bool is_patient(const Operation& operation) {
  if (operation.kind() == Operation::replica_step &&
      operation.replica().deadline_ms() < kPatientMs) {
    return false;
  }
  return operation.delivery().deadline_ms() >= kPatientMs;
}

// Links that stay as they are in the calm: full queues drop, and jitter makes packets late.
bool loses_in_calm(const Scenario& scenario) {
  for (const scenario::Link& link : scenario.link()) {
    if (link.has_rate_mbps()) return true;
    if (link.has_delay_ms() && !link.delay_ms().has_fixed() && !link.delay_ms().keep_order())
      return true;
  }
  return false;
}

}  // namespace

bool promises_recovery(const Scenario& scenario) {
  if (scenario.crash_size() > 0 || !is_patient(scenario.operation())) return false;
  // A root does not wait: who was cut off for deadlines finds that it has given up later rounds.
  if (scenario.operation().kind() == Operation::broadcast && scenario.partition_size() > 0)
    return false;
  if (!is_lossy(scenario.operation())) return true;
  // First passes that are multicast in vain are noticed only when their window is full.
  return !loses_in_calm(scenario) && !scenario.multicast().has_until_round();
}

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
  if (!promises_recovery(scenario)) scenario.mutable_checkers()->add_skip("i9");
  scenario.mutable_checkers()->add_skip("i10");
  return scenario;
}

}  // namespace leeway::sim::swarm
