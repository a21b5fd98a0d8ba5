// The parts of draw_scenario(), in the order in which they are drawn: later ones read what earlier
// ones decided.
#pragma once

#include "scenario.pb.h"
#include "swarm/dice.h"

namespace leeway::sim::swarm {

void draw_size(Dice& dice, scenario::Scenario& scenario);  // ranks, rounds, calm_from_round
void draw_operation(Dice& dice, scenario::Scenario& scenario);
void draw_network(Dice& dice, scenario::Scenario& scenario);
void draw_faults(Dice& dice, scenario::Scenario& scenario);  // faults of processes, and partitions
void draw_leaves(Dice& dice, scenario::Scenario& scenario);  // may take the calm away
// Draws uneven blocks and tags of messages. Called last, so that the rest of a seed's scenario
// stays as it was before these existed.
void draw_shapes(Dice& dice, scenario::Scenario& scenario);
// Draws further communicators and aborts. Called after all the others, for the same reason.
void draw_communicators(Dice& dice, scenario::Scenario& scenario);
// Draws congestion control, which paces.
void draw_congestion(Dice& dice, scenario::Scenario& scenario);
void draw_sealing(Dice& dice, scenario::Scenario& scenario);
// Draws changes of addresses, in scenarios that seal.
void draw_addresses(Dice& dice, scenario::Scenario& scenario);
void draw_symmetric(Dice& dice, scenario::Scenario& scenario);
void draw_relay_share(Dice& dice, scenario::Scenario& scenario);
// Draws paths that carry only short packets from some time on.
void draw_narrow(Dice& dice, scenario::Scenario& scenario);
// Draws contributions with infinities and NaNs.
void draw_spoiled(Dice& dice, scenario::Scenario& scenario);
// Draws messages before a round's call; called last of all.
void draw_messages_first(Dice& dice, scenario::Scenario& scenario);

// Draws flows with many packets. Their first pass takes several round trips, and they are repaired
// meanwhile. Uses dice of its own, too.
void draw_long_flows(Dice& dice, scenario::Scenario& scenario);
// Draws ranks that lie in sites. Uses dice of its own, so scenarios without sites stay as they
// were.
void draw_sites(Dice& dice, scenario::Scenario& scenario);
// Draws ranks with several lanes. Uses dice of its own, and is called after draw_sites().
void draw_lanes(Dice& dice, scenario::Scenario& scenario);

// Returns true if a rank is stopped for so long that others may take it for dead.
bool may_be_given_up(const scenario::Scenario& scenario);

// A deadline that is long enough for any fault that is drawn to end, and for repairs after it.
inline constexpr double kPatientMs = 60000;

}  // namespace leeway::sim::swarm
