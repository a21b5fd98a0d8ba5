#include <algorithm>
#include <string>

#include "swarm/draw_parts.h"

namespace leeway::sim::swarm {
namespace {

using scenario::Communicator;
using scenario::Delivery;
using scenario::Operation;
using scenario::Scenario;

// Limit on ranks for further communicators. With more ranks, such scenarios take seconds each and
// show nothing new.
constexpr std::uint32_t kRanksMax = 12;

// A deadline, in ms, that leaves time for split, join, call, abort and leave. An exact call that
// nobody answers ends after this time.
constexpr double kWaitMs = 5000;

std::string draw_members(Dice& dice, const Scenario& scenario) {
  if (scenario.ranks() == 2 || dice.one_in(3)) return "*";
  const std::uint32_t from = dice.between(0, scenario.ranks() - 2);
  const std::uint32_t to = dice.between(from + 1, scenario.ranks() - 1);
  return std::to_string(from) + "-" + std::to_string(to);
}

void draw_own_operation(Dice& dice, Operation& operation) {
  operation.set_kind(dice.pick(
      {Operation::all_reduce, Operation::all_reduce, Operation::reduce_scatter,
       Operation::all_gather, Operation::broadcast, Operation::all_to_all, Operation::gather,
       Operation::scatter, Operation::reduce, Operation::barrier, Operation::messages}));
  operation.set_bytes(4 * dice.magnitude(64, 4096));
  Delivery& delivery = *operation.mutable_delivery();
  const bool reduces = operation.kind() == Operation::all_reduce ||
                       operation.kind() == Operation::reduce_scatter ||
                       operation.kind() == Operation::reduce;
  delivery.set_kind(!reduces
                        ? Delivery::exact
                        : dice.pick({Delivery::exact, Delivery::bounded, Delivery::best_effort}));
  if (delivery.kind() == Delivery::bounded) delivery.set_loss_max(dice.decimal(0, 200));
  delivery.set_deadline_ms(dice.one_in(4) ? dice.decimal_magnitude(2000, 200000) : kWaitMs);
  const bool loses_spread = operation.kind() == Operation::all_reduce && dice.one_in(3);
  // The library refuses exact sums with a lossy spread half.
  if (loses_spread && delivery.kind() != Delivery::exact)
    operation.set_spread(Delivery::best_effort);
  operation.set_codec(dice.pick({"fp32", "fp32", "int8", "bf16"}));
  if (operation.kind() == Operation::messages) {
    operation.set_messages_max(dice.magnitude(1, 16));
    if (dice.one_in(2)) operation.set_tags(dice.magnitude(2, 10));
    if (dice.one_in(3)) operation.set_any_source(true);
    if (dice.one_in(3)) operation.set_exchange(true);
  }
}

void draw_aborts(Dice& dice, const Scenario& scenario, Communicator& communicator) {
  const bool all = communicator.ranks() == "*";
  const std::size_t dash = communicator.ranks().find('-');
  const auto from =
      static_cast<std::uint32_t>(all ? 0 : std::stoul(communicator.ranks().substr(0, dash)));
  const auto to = static_cast<std::uint32_t>(
      all ? scenario.ranks() - 1 : std::stoul(communicator.ranks().substr(dash + 1)));
  for (std::uint32_t left = dice.between(1, 2); left > 0; --left) {
    scenario::Abort& abort = *communicator.add_abort();
    abort.set_rank(dice.between(from, to));
    abort.set_life(dice.between(0, communicator.again()));
    abort.set_from_round(dice.between(0, communicator.rounds() - 1));
    if (dice.one_in(2)) abort.set_after_ms(dice.decimal_magnitude(1, 50000));
  }
}

// Like promises_recovery(), for a further communicator. Aborts rule whole rounds out, because they
// end the rounds of other members.
bool promises_whole_rounds(const Scenario& scenario, const Communicator& communicator) {
  const Operation& operation = communicator.operation();
  const bool exact =
      operation.delivery().kind() == Delivery::exact && operation.spread() == Delivery::exact;
  return exact && communicator.abort_size() == 0 && operation.delivery().deadline_ms() >= kWaitMs &&
         scenario.partition_size() == 0 && scenario.address_change_size() == 0 &&
         !may_be_given_up(scenario);
}

// Makes ranks join the first further communicator late. Ranks that joined already call a late rank
// for longer than the peer time-out, and must not give it up.
void draw_late_join(Dice& dice, Scenario& scenario) {
  if (!scenario.operation().has_peer_timeout_ms() || dice.one_in(2)) return;
  const double late_ms = 4 * scenario.operation().peer_timeout_ms();
  scenario.mutable_communicator(0)->set_open_ms(std::min(late_ms, kWaitMs / 2));
}

}  // namespace

void draw_communicators(Dice& dice, Scenario& scenario) {
  if (scenario.ranks() > kRanksMax || !dice.one_in(3)) return;
  for (std::uint32_t left = dice.pick({1u, 1u, 1u, 2u, 3u}); left > 0; --left) {
    Communicator& communicator = *scenario.add_communicator();
    communicator.set_ranks(draw_members(dice, scenario));
    communicator.set_reversed(dice.one_in(3));
    communicator.set_split(dice.one_in(2));
    if (communicator.split()) communicator.set_split_deadline_ms(kPatientMs);
    communicator.set_from_round(dice.between(0, scenario.rounds() - 1));
    if (dice.one_in(2)) communicator.set_open_ms(dice.decimal_magnitude(1, 50000));
    if (dice.one_in(2)) communicator.set_idle_ms(dice.decimal_magnitude(1, 20000));
    communicator.set_rounds(dice.between(1, 6));
    if (dice.one_in(3)) communicator.set_again(dice.between(1, 2));
    draw_own_operation(dice, *communicator.mutable_operation());
    if (dice.one_in(2)) draw_aborts(dice, scenario, communicator);
    if (!promises_whole_rounds(scenario, communicator))
      communicator.mutable_checkers()->add_skip("i9");
  }
  draw_late_join(dice, scenario);
}

}  // namespace leeway::sim::swarm
