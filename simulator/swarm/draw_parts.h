// The parts of draw_scenario(), which gives the order of the calls. Later parts read what earlier
// parts decided.
#pragma once

#include "scenario.pb.h"
#include "swarm/dice.h"

namespace leeway::sim::swarm {

void draw_size(Dice& dice, scenario::Scenario& scenario);  // ranks, rounds, calm_from_round
void draw_operation(Dice& dice, scenario::Scenario& scenario);
void draw_network(Dice& dice, scenario::Scenario& scenario);
void draw_faults(Dice& dice, scenario::Scenario& scenario);  // faults of processes, and partitions
void draw_leaves(Dice& dice, scenario::Scenario& scenario);  // may take the calm away
// Draws uneven blocks and tags of messages. Called after the older parts, so that old seeds keep
// the rest of their scenario.
void draw_shapes(Dice& dice, scenario::Scenario& scenario);
// Draws further communicators and aborts. Called after draw_shapes(), so that old seeds keep the
// rest of their scenario.
void draw_communicators(Dice& dice, scenario::Scenario& scenario);
// Draws congestion control, and with it pacing.
void draw_congestion(Dice& dice, scenario::Scenario& scenario);
void draw_sealing(Dice& dice, scenario::Scenario& scenario);
// Draws changes of addresses, which need sealing.
void draw_addresses(Dice& dice, scenario::Scenario& scenario);
void draw_symmetric(Dice& dice, scenario::Scenario& scenario);
void draw_relay_share(Dice& dice, scenario::Scenario& scenario);
// Draws paths that, from some time on, carry only short packets.
void draw_narrow(Dice& dice, scenario::Scenario& scenario);
// Draws contributions with infinities and NaNs.
void draw_spoiled(Dice& dice, scenario::Scenario& scenario);
// Draws messages before a round's call. Called after all other parts that draw from the same dice.
void draw_messages_first(Dice& dice, scenario::Scenario& scenario);

// Draws flows with so many packets that the first pass takes several round trips, and repair begins
// during the pass. Uses dice of its own.
void draw_long_flows(Dice& dice, scenario::Scenario& scenario);
// Draws sites. Uses dice of its own, so that other scenarios keep their draws.
void draw_sites(Dice& dice, scenario::Scenario& scenario);
// Draws so many tags that some messages wait for a turn. Uses dice of its own.
void draw_many_tags(Dice& dice, scenario::Scenario& scenario);
// Draws several lanes. Uses dice of its own. Call it after draw_sites().
void draw_lanes(Dice& dice, scenario::Scenario& scenario);

// Returns true if a rank is stopped long enough for others to give it up.
bool may_be_given_up(const scenario::Scenario& scenario);

// A deadline, in ms, that is long enough for any drawn fault to end and for repairs after it.
inline constexpr double kPatientMs = 60000;

}  // namespace leeway::sim::swarm
