// Properties of a scenario's network that decide which invariants can be checked.
#pragma once

#include "scenario.pb.h"

namespace leeway::sim {

// Returns true if packets of a pair never overtake each other, and the network's observer is told
// of every loss.
bool keeps_order(const scenario::Scenario& scenario);

// Returns true if there may be a time in which no packet at all passes between two ranks. Bursts of
// losses do not count.
bool has_outages(const scenario::Scenario& scenario);

// Returns true if a rank may be silent to another for many time-outs though both live and run,
// because it is cut off or all its probes are lost.
bool may_silence(const scenario::Scenario& scenario);

// Returns true if all copies of a good-bye may be lost. Losses in bursts may do so, because the
// length of a burst is counted in packets. Independent losses may do so if they exceed two packets
// of three on the longest way. At two of three, the 12 copies that WIRE 6.3 asks for are all lost
// in one of 130 good-byes. A fast path sends more copies in its two seconds.
bool may_lose_goodbyes(const scenario::Scenario& scenario);

// Returns true if the operation's estimator has mean error zero under this network's losses, and
// results have no error from another source.
bool is_unbiased(const scenario::Scenario& scenario);
// Returns true if contributions have the same distribution on all ranks, per unit of work, and a
// codec adds no bias.
bool has_alike_contributions(const scenario::Scenario& scenario);

}  // namespace leeway::sim
