#include <algorithm>
#include <string>
#include <vector>

#include "swarm/draw_parts.h"

namespace leeway::sim::swarm {
namespace {

using scenario::Delivery;
using scenario::Operation;
using scenario::Scenario;

bool reduces(Operation::Kind kind) {
  return kind == Operation::all_reduce || kind == Operation::reduce_scatter ||
         kind == Operation::replica_step || kind == Operation::reduce;
}

bool has_root(Operation::Kind kind) {
  return kind == Operation::broadcast || kind == Operation::gather || kind == Operation::scatter ||
         kind == Operation::reduce;
}

std::string draw_codec(Dice& dice) {
  if (dice.one_in(2)) return "fp32";
  return dice.pick<const char*>(
      {"native",         "fp16",           "bf16",           "fp8_e4m3",   "fp8_e5m2",
       "fp8_e4m3_block", "fp8_e5m2_block", "mxfp8_e4m3",     "mxfp8_e5m2", "mxfp6_e2m3",
       "mxfp6_e3m2",     "mxfp4",          "nvfp4",          "nvfp4_te",   "luq",
       "luq:draws=2",    "int8",           "int8:clip",      "sparse:1/2", "sparse:2/4",
       "fp32:rotate",    "nvfp4:nearest",  "bf16:stochastic"});
}

double draw_deadline_ms(Dice& dice) {
  return dice.one_in(4) ? dice.decimal_magnitude(50, 400000) : kPatientMs;
}

Delivery::Kind draw_class(Dice& dice) {
  return dice.pick({Delivery::exact, Delivery::bounded, Delivery::best_effort});
}

void draw_delivery(Dice& dice, Operation& operation) {
  Delivery& delivery = *operation.mutable_delivery();
  delivery.set_kind(reduces(operation.kind()) ? draw_class(dice) : Delivery::exact);
  if (delivery.kind() == Delivery::bounded && dice.one_in(2))
    delivery.set_loss_max(dice.decimal(0, 300));
  delivery.set_deadline_ms(draw_deadline_ms(dice));
  if (operation.kind() != Operation::all_reduce) return;
  operation.set_spread(delivery.kind() == Delivery::exact ? Delivery::exact : draw_class(dice));
}

void draw_reduction(Dice& dice, Operation& operation) {
  operation.set_estimator(
      static_cast<Operation::Estimator>(dice.between(0, Operation::Estimator_MAX)));
  if (operation.estimator() == Operation::augmented && dice.one_in(2))
    operation.set_control_variate(Operation::previous);
  if (dice.one_in(5)) operation.set_error_feedback(true);
  if (dice.one_in(20)) operation.set_codec("automatic");
  if (operation.delivery().kind() != Delivery::exact && dice.one_in(3))
    operation.set_confirm_use(true);
  if (!dice.one_in(4)) return;
  operation.set_owner_weights(true);
  operation.set_confirm_use(true);
}

void draw_replica(Dice& dice, Scenario& scenario) {
  scenario::Replica& replica = *scenario.mutable_operation()->mutable_replica();
  replica.set_age_max(dice.between(1, 8));
  replica.set_delivery(draw_class(dice));
  replica.set_deadline_ms(draw_deadline_ms(dice));
  replica.set_codec(draw_codec(dice));
  replica.set_drift_samples(16);
  scenario.mutable_workload()->mutable_quadratic();
}

}  // namespace

void draw_operation(Dice& dice, Scenario& scenario) {
  Operation& operation = *scenario.mutable_operation();
  operation.set_kind(dice.one_in(3)
                         ? Operation::all_reduce
                         : static_cast<Operation::Kind>(dice.between(0, Operation::Kind_MAX)));
  if (has_root(operation.kind()) && dice.one_in(2))
    operation.set_root(dice.between(0, scenario.ranks() - 1));
  if (operation.kind() == Operation::messages) operation.set_messages_max(dice.magnitude(1, 40));
  const std::uint32_t elements_max = scenario.ranks() > 16 ? 4096 : 16384;
  operation.set_bytes(4 * dice.magnitude(256, elements_max));
  draw_delivery(dice, operation);
  operation.set_codec(draw_codec(dice));
  if (operation.kind() == Operation::all_reduce && dice.one_in(4))
    operation.set_spread_codec(draw_codec(dice));
  if (reduces(operation.kind())) draw_reduction(dice, operation);
  if (dice.one_in(3)) operation.set_permute(false);
  operation.set_datagram_bytes(dice.pick({512u, 600u, 1200u, 1472u, 1472u, 4000u, 9000u}));
  if (dice.one_in(4)) operation.set_window_bytes(operation.datagram_bytes() * dice.between(1, 16));
  if (operation.kind() == Operation::replica_step) draw_replica(dice, scenario);
}

void draw_shapes(Dice& dice, Scenario& scenario) {
  Operation& operation = *scenario.mutable_operation();
  const bool has_blocks = operation.kind() == Operation::reduce_scatter ||
                          operation.kind() == Operation::all_gather ||
                          operation.kind() == Operation::all_to_all;
  if (has_blocks && dice.one_in(2)) operation.set_uneven(true);
  if (operation.kind() != Operation::messages) return;
  if (dice.one_in(2)) operation.set_tags(dice.magnitude(2, 40));
  if (dice.one_in(3)) operation.set_any_source(true);
  if (dice.one_in(3)) operation.set_exchange(true);
}

// Draws congestion control. A fixed rate is high enough to send a round's data long before the
// deadline.
void draw_congestion(Dice& dice, Scenario& scenario) {
  if (!dice.one_in(3)) return;
  scenario::Congestion& congestion = *scenario.mutable_congestion();
  congestion.set_control(dice.pick({scenario::Congestion::fixed, scenario::Congestion::scavenger,
                                    scenario::Congestion::wan, scenario::Congestion::wan,
                                    scenario::Congestion::fabric}));
  if (congestion.control() == scenario::Congestion::fixed)
    congestion.set_rate_mbps(dice.decimal_magnitude(50'000, 10'000'000));
}

// Draws short key phases, so that keys change while datagrams of the old phase are under way.
void draw_sealing(Dice& dice, Scenario& scenario) {
  if (scenario.has_multicast() || !dice.one_in(3)) return;
  scenario::Sealing& sealing = *scenario.mutable_sealing();
  sealing.set_phase_datagrams(dice.magnitude(16, 100'000));
  if (dice.one_in(3)) sealing.set_phase_ms(dice.magnitude(100, 100'000));
}

void draw_spoiled(Dice& dice, Scenario& scenario) {
  Operation& operation = *scenario.mutable_operation();
  if (!reduces(operation.kind()) || operation.delivery().kind() == Delivery::exact) return;
  if (dice.one_in(3)) operation.set_non_finite(dice.decimal(10, 1000));
}

// Draws one rank whose address changes, and perhaps an address translator that forgets the rank's
// port when idle. Keep-alives keep the port unless the rank is stopped. A rank that moves cannot be
// reached for a while. Only one rank moves, because two ranks that move at once find each other
// only with the help of a third rank.
void draw_addresses(Dice& dice, Scenario& scenario) {
  if (!scenario.has_sealing() || !scenario.has_calm_from_round() ||
      scenario.operation().has_peer_timeout_ms() || dice.one_in(2))
    return;
  const std::uint32_t rank = dice.between(0, scenario.ranks() - 1);
  for (std::uint32_t left = dice.between(0, 3); left > 0; --left) {
    auto& change = *scenario.add_address_change();
    change.set_rank(rank);
    change.set_from_round(dice.between(0, scenario.calm_from_round() - 1));
    if (dice.one_in(2)) change.set_after_ms(dice.decimal_magnitude(1, 200'000));
    if (dice.one_in(2)) change.set_port_only(true);
  }
  if (!dice.one_in(3)) return;
  auto& translator = *scenario.add_translator();
  translator.set_ranks(std::to_string(rank));
  translator.set_idle_ms(dice.magnitude(400, 60'000));
  scenario.mutable_sealing()->set_keep_alive_ms(translator.idle_ms() / 2);
}

// Draws two ranks behind symmetric address translators. These ranks have no path to each other, so
// other ranks relay for them. Keep-alives keep the translators' ports.
void draw_symmetric(Dice& dice, Scenario& scenario) {
  if (!scenario.has_sealing() || !scenario.has_calm_from_round() || scenario.ranks() < 3 ||
      scenario.translator_size() > 0 || scenario.operation().has_peer_timeout_ms() ||
      dice.one_in(2))
    return;
  const std::uint32_t one = dice.between(0, scenario.ranks() - 1);
  const std::uint32_t other = (one + dice.between(1, scenario.ranks() - 1)) % scenario.ranks();
  // With three ranks, the moving rank would be the only relay. The two symmetric translators would
  // refuse its new address, and nobody else could tell the two ranks about it.
  if (scenario.address_change_size() > 0 && scenario.ranks() == 3) return;
  auto& translator = *scenario.add_translator();
  translator.set_ranks(std::to_string(std::min(one, other)) + "," +
                       std::to_string(std::max(one, other)));
  translator.set_symmetric(true);
  translator.set_idle_ms(60'000);
  // If a relay left without serving, the two ranks would have no path in the last round.
  for (scenario::Leave& leave : *scenario.mutable_leave()) leave.clear_at_once();
}

// Gives relays so low a rate that they refuse to forward some datagrams, and tell the sender.
void draw_relay_share(Dice& dice, Scenario& scenario) {
  const bool relayed = std::any_of(scenario.translator().begin(), scenario.translator().end(),
                                   [](const auto& one) { return one.symmetric(); });
  if (!relayed || !dice.one_in(2)) return;
  scenario::Congestion& congestion = *scenario.mutable_congestion();
  congestion.set_control(scenario::Congestion::fixed);
  congestion.set_rate_mbps(dice.decimal_magnitude(10'000, 200'000));
}

// Draws messages before a round's call. This tests that ranks with different numbers of messages
// still agree on their collectives.
void draw_messages_first(Dice& dice, Scenario& scenario) {
  Operation& operation = *scenario.mutable_operation();
  if (operation.kind() == Operation::messages || !dice.one_in(6)) return;
  operation.set_messages_first(dice.between(1, 3));
}

namespace {

// Makes ranks stop computing at a threshold, some before their first micro-batch ends. So
// contributions have different weights, some of them 0.
void draw_dropped_work(Dice& dice, Scenario& scenario) {
  scenario::Compute& compute = *scenario.add_compute();
  scenario::Compute::DropCompute& work = *compute.mutable_drop_compute();
  const std::uint32_t micro_batch_us = dice.magnitude(10, 5000);
  work.set_micro_batch_ms(micro_batch_us / 1000.0);
  work.set_micro_batches(dice.between(2, 8));
  work.set_threshold_ms(dice.decimal(micro_batch_us, 8 * micro_batch_us));
  if (dice.one_in(2)) work.set_forward_share(dice.decimal(100, 900));
}

}  // namespace

// Draws long flows for most paced exact scenarios of a few ranks. It draws none if a controller
// that yields to delay would take minutes: with `fabric` always, with `scavenger` if delays vary.
void draw_long_flows(Dice& dice, Scenario& scenario) {
  Operation& operation = *scenario.mutable_operation();
  const bool fits = operation.kind() == Operation::all_reduce ||
                    operation.kind() == Operation::reduce_scatter ||
                    operation.kind() == Operation::all_gather;
  if (!fits || !scenario.has_congestion() || scenario.ranks() > 6) return;
  const bool varies = std::ranges::any_of(scenario.link(), [](const scenario::Link& link) {
    return link.has_delay_ms() && !link.delay_ms().has_fixed();
  });
  const scenario::Congestion::Control control = scenario.congestion().control();
  if (control == scenario::Congestion::fabric) return;
  if (control == scenario::Congestion::scavenger && varies) return;
  if (operation.delivery().kind() != Delivery::exact || dice.one_in(4)) return;
  operation.set_bytes(4 * dice.magnitude(32'768, 262'144));
  operation.set_datagram_bytes(dice.pick({512u, 600u, 1200u, 1472u}));
}

// Draws sites for half of the scenarios whose calls the library would send by sites.
void draw_sites(Dice& dice, Scenario& scenario) {
  Operation& operation = *scenario.mutable_operation();
  const bool fits = operation.kind() == Operation::all_reduce ||
                    operation.kind() == Operation::reduce_scatter ||
                    operation.kind() == Operation::all_gather;
  if (!fits || operation.uneven() || operation.confirm_use() || operation.owner_weights()) return;
  if (scenario.has_multicast() || scenario.leave_size() > 0) return;
  std::vector<std::uint32_t> choices;
  for (std::uint32_t per_site = 2; 2 * per_site <= scenario.ranks(); ++per_site) {
    if (scenario.ranks() % per_site == 0) choices.push_back(per_site);
  }
  if (choices.empty() || !dice.one_in(2)) return;
  operation.set_site_ranks(
      choices[dice.between(0, static_cast<std::uint32_t>(choices.size()) - 1)]);
  if (operation.delivery().kind() == Delivery::exact && dice.one_in(2))
    operation.set_site_piece_bytes(dice.magnitude(1024, 65536));
  if (dice.one_in(3)) draw_dropped_work(dice, scenario);
}

void draw_many_tags(Dice& dice, Scenario& scenario) {
  Operation& operation = *scenario.mutable_operation();
  if (operation.kind() != Operation::messages || scenario.ranks() > 2 || dice.one_in(4)) return;
  // Each direction gets about 400 to 500 messages, with more than twice limits::kTalkingTagsMax
  // different tags. So some messages wait for a turn. Most are longer than their eager packets.
  operation.set_tags(1000);
  operation.set_messages_max(dice.between(800, 1000));
  operation.set_bytes(12 * operation.datagram_bytes());
}

// Draws lanes for most scenarios whose calls the library would cut into slices.
void draw_lanes(Dice& dice, Scenario& scenario) {
  constexpr std::uint32_t kCutFrom = 8192;  // two slices of whole blocks
  Operation& operation = *scenario.mutable_operation();
  const bool fits =
      operation.kind() == Operation::all_reduce || operation.kind() == Operation::all_gather;
  if (!fits || operation.uneven() || operation.confirm_use() || operation.owner_weights()) return;
  if (operation.site_ranks() > 0 || operation.bytes() < kCutFrom) return;
  if (scenario.has_multicast() || scenario.has_sealing() || scenario.narrow_size() > 0 ||
      scenario.leave_size() > 0)
    return;
  if (dice.one_in(4)) return;
  operation.set_lanes(dice.between(2, 4));
  operation.set_slice_bytes(
      dice.magnitude(kCutFrom / 2, static_cast<std::uint32_t>(operation.bytes() / 2)));
}

}  // namespace leeway::sim::swarm
