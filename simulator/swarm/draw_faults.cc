#include <algorithm>
#include <string>

#include "checker/network_traits.h"
#include "swarm/draw.h"
#include "swarm/draw_parts.h"

namespace leeway::sim::swarm {
namespace {

using scenario::Scenario;

// After a crash, ranks wait for the dead rank until the deadline, round after round. With more than
// kRanksThatMayWait ranks, this would take ten million events that show nothing new. The deadline
// is then cut to kShortWaitMs.
constexpr std::uint32_t kRanksThatMayWait = 16;
constexpr double kShortWaitMs = 1000;

std::uint32_t draw_rank(Dice& dice, const Scenario& scenario) {
  return dice.between(0, scenario.ranks() - 1);
}

std::uint32_t draw_round(Dice& dice, const Scenario& scenario) {
  return dice.between(0, scenario.calm_from_round() - 1);
}

double draw_after_ms(Dice& dice) {
  return dice.one_in(2) ? 0.0 : dice.decimal_magnitude(1, 200000);
}

std::string text_of(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.back() == '.' ? text + "0" : text;
}

void draw_partition(Dice& dice, Scenario& scenario) {
  auto& partition = *scenario.add_partition();
  const std::uint32_t cut = dice.between(1, scenario.ranks() - 1);
  const std::string low = "0-" + std::to_string(cut - 1);
  const std::string high = std::to_string(cut) + "-";
  if (dice.one_in(2)) {
    partition.set_between(low);
    partition.set_and_(high);
  } else {
    partition.set_from(dice.one_in(2) ? low : high);
    partition.set_to(dice.one_in(2) ? std::to_string(draw_rank(dice, scenario)) : "*");
  }
  partition.set_from_round(draw_round(dice, scenario));
  partition.set_after_ms(draw_after_ms(dice));
  if (!dice.one_in(8)) partition.set_for_ms(dice.decimal_magnitude(100, 5000000));
}

void draw_pause(Dice& dice, Scenario& scenario) {
  auto& pause = *scenario.add_pause();
  pause.set_rank(draw_rank(dice, scenario));
  pause.set_from_round(draw_round(dice, scenario));
  pause.set_after_ms(draw_after_ms(dice));
  pause.set_for_ms(dice.decimal_magnitude(10, 3000000));
  // A small socket buffer overflows during the pause.
  if (dice.one_in(3))
    scenario.mutable_operation()->set_socket_bytes(dice.magnitude(65536, 1048576));
}

void draw_crash(Dice& dice, Scenario& scenario) {
  auto& crash = *scenario.add_crash();
  crash.set_rank(draw_rank(dice, scenario));
  crash.set_from_round(draw_round(dice, scenario));
  crash.set_after_ms(draw_after_ms(dice));
  if (scenario.ranks() <= kRanksThatMayWait) return;
  auto& operation = *scenario.mutable_operation();
  auto& delivery = *operation.mutable_delivery();
  delivery.set_deadline_ms(std::min(delivery.deadline_ms(), kShortWaitMs));
  if (!operation.has_replica()) return;
  auto& replica = *operation.mutable_replica();
  replica.set_deadline_ms(std::min(replica.deadline_ms(), kShortWaitMs));
}

// Longest time for which a packet may be held back on its way.
double held_back_ms(const Scenario& scenario) {
  double link_ms = 0.0;
  for (const scenario::Link& link : scenario.link())
    link_ms = std::max(link_ms, link.reorder().by_ms());
  return link_ms * (scenario.topology().has_ring() ? scenario.ranks() / 2 : 1);
}

// Draws a peer time-out, but only if nothing except crashes and pauses can silence a rank for long.
// Packets may be held back for less than a quarter of the time-out.
void draw_peer_timeout(Dice& dice, Scenario& scenario) {
  const double timeout_ms = dice.decimal_magnitude(200000, 3000000);
  if (may_silence(scenario) || 4 * held_back_ms(scenario) >= timeout_ms) return;
  scenario.mutable_operation()->set_peer_timeout_ms(timeout_ms);
}

void draw_compute(Dice& dice, Scenario& scenario) {
  auto& compute = *scenario.add_compute();
  switch (dice.between(0, 2)) {
    case 0:
      compute.set_constant_ms(dice.decimal_magnitude(1, 50000));
      break;
    case 1:
      compute.mutable_lognormal()->set_median_ms(dice.decimal_magnitude(1, 50000));
      compute.mutable_lognormal()->set_sigma(dice.decimal(100, 1000));
      break;
    default:
      compute.mutable_periodic()->set_base_ms(dice.decimal_magnitude(1, 10000));
      compute.mutable_periodic()->set_extra_ms(dice.decimal_magnitude(1, 500000));
      compute.mutable_periodic()->set_every(dice.between(1, 4));
  }
}

void draw_slow(Dice& dice, Scenario& scenario) {
  auto& slow = *scenario.add_slow();
  slow.set_rank(draw_rank(dice, scenario));
  slow.set_factor(dice.between(2, 20));
  slow.set_from_round(draw_round(dice, scenario));
}

void draw_inject(Dice& dice, Scenario& scenario) {
  std::string text = "seed=" + std::to_string(dice.between(1, 1000));
  if (dice.one_in(2)) text += ",loss=" + text_of(dice.decimal_magnitude(1, 300));
  if (dice.one_in(2)) text += ",burst=" + std::to_string(dice.between(1, 10));
  if (dice.one_in(2)) text += ",dup=" + text_of(dice.decimal_magnitude(1, 300));
  if (dice.one_in(2)) text += ",reorder=" + text_of(dice.decimal_magnitude(1, 300));
  if (dice.one_in(4)) text += ",corrupt=" + text_of(dice.decimal(1, 10));
  if (dice.one_in(4)) text += ",delay=" + std::to_string(dice.magnitude(1, 20000)) + "us";
  scenario.mutable_operation()->set_inject(text);
}

void draw_leave(Dice& dice, scenario::Leave& leave) {
  leave.set_after_ms(draw_after_ms(dice));
  if (dice.one_in(6)) leave.set_at_once(true);
}

}  // namespace

void draw_faults(Dice& dice, Scenario& scenario) {
  if (dice.one_in(2)) draw_compute(dice, scenario);
  if (scenario.compute_size() > 0 && dice.one_in(3)) draw_slow(dice, scenario);
  for (std::uint32_t left = dice.one_in(3) ? dice.between(1, 2) : 0; left > 0; --left)
    draw_partition(dice, scenario);
  for (std::uint32_t left = dice.one_in(3) ? dice.between(1, 2) : 0; left > 0; --left)
    draw_pause(dice, scenario);
  if (dice.one_in(6)) draw_crash(dice, scenario);
  if (dice.one_in(8)) draw_inject(dice, scenario);
  if (dice.one_in(3)) draw_peer_timeout(dice, scenario);
}

// Draws narrow paths. Payloads of 1,200 bytes, the core's least size, always pass.
void draw_narrow(Dice& dice, Scenario& scenario) {
  if (scenario.has_multicast() || !dice.one_in(3)) return;
  auto& narrow = *scenario.add_narrow();
  const std::uint32_t cut = dice.between(1, scenario.ranks() - 1);
  const std::string low = "0-" + std::to_string(cut - 1);
  const std::string high = std::to_string(cut) + "-";
  if (dice.one_in(3)) {
    narrow.set_between(low);
    narrow.set_and_(high);
  } else {
    narrow.set_from(dice.one_in(2) ? low : high);
    narrow.set_to(dice.one_in(2) ? std::to_string(draw_rank(dice, scenario)) : "*");
  }
  narrow.set_bytes(dice.pick({1228u, 1280u, 1300u, 1450u, 1490u, 4028u}));
  // calm_from_round may be unset by now, so the begin of the calm is computed
  narrow.set_from_round(dice.between(0, scenario.rounds() - kCalmRounds - 1));
  narrow.set_after_ms(draw_after_ms(dice));
  if (dice.one_in(4)) narrow.set_for_ms(dice.decimal_magnitude(100, 5000000));
}

// Draws which ranks leave after the last round: all ranks, or one rank, or all with one of them at
// a time of its own. The one rank sometimes leaves before the last round. Half of these scenarios
// have no calm at the end.
void draw_leaves(Dice& dice, Scenario& scenario) {
  if (!dice.one_in(3)) return;
  if (!dice.one_in(4)) draw_leave(dice, *scenario.add_leave());
  if (dice.one_in(2)) {
    scenario::Leave& one = *scenario.add_leave();
    // The rank is never rank 0, because faults begin when rank 0 submits a round.
    const std::uint32_t rank = dice.between(1, scenario.ranks() - 1);
    one.set_ranks(std::to_string(rank));
    draw_leave(dice, one);
    if (scenario.crash_size() == 0 && dice.one_in(3))
      one.set_from_round(dice.between(1, scenario.rounds() - 1));
  }
  if (scenario.leave_size() > 0 && dice.one_in(2)) scenario.clear_calm_from_round();
}

}  // namespace leeway::sim::swarm
