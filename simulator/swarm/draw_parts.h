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
// Uneven blocks, tags of messages. Last, so that the rest of a seed's scenario stays as it was
// without.
void draw_shapes(Dice& dice, scenario::Scenario& scenario);
// Further communicators, aborts. Behind all the others, for the same reason.
void draw_communicators(Dice& dice, scenario::Scenario& scenario);
// Congestion control, which paces.
void draw_congestion(Dice& dice, scenario::Scenario& scenario);
// Sealing.
void draw_sealing(Dice& dice, scenario::Scenario& scenario);
// Where ranks are, in scenarios that seal.
void draw_addresses(Dice& dice, scenario::Scenario& scenario);
void draw_symmetric(Dice& dice, scenario::Scenario& scenario);
void draw_relay_share(Dice& dice, scenario::Scenario& scenario);
// Paths that carry only short packets from some time on.
void draw_narrow(Dice& dice, scenario::Scenario& scenario);
// Contributions with infinities and NaNs.
void draw_spoiled(Dice& dice, scenario::Scenario& scenario);
// Messages before a round's call; last of all.
void draw_messages_first(Dice& dice, scenario::Scenario& scenario);

// Flows with many packets, whose first pass takes several round trips: they are repaired meanwhile.
// By dice of their own, too.
void draw_long_flows(Dice& dice, scenario::Scenario& scenario);
// Ranks that lie in sites. By dice of their own: scenarios that have none stay as they were.
void draw_sites(Dice& dice, scenario::Scenario& scenario);
// Ranks with several lanes; likewise, and after sites.
void draw_lanes(Dice& dice, scenario::Scenario& scenario);

// Returns true if a rank is stopped for so long that others may take it for dead.
bool may_be_given_up(const scenario::Scenario& scenario);

// Calls last long enough for any fault that is drawn to end, and for repairs after it.
inline constexpr double kPatientMs = 60000;

}  // namespace leeway::sim::swarm
