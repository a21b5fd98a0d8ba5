// Properties of a scenario's network that decide which invariants can be checked.
#pragma once

#include "scenario.pb.h"

namespace leeway::sim {

// Returns true if packets of a pair never overtake each other, and the network's observer is told
// of every loss.
bool keeps_order(const scenario::Scenario& scenario);

// Returns true if for a while nothing at all may pass between two ranks. Bursts of losses do not
// count.
bool has_outages(const scenario::Scenario& scenario);

// Returns true if a rank may be silent to another for many time-outs though both live and run: it
// is cut off, or all probes may be lost.
bool may_silence(const scenario::Scenario& scenario);

// Returns true if all copies of a good-bye may be lost. That is so if losses come in bursts, whose
// length is counted in packets, or if independent losses take more than two packets of three on the
// longest way. At two of three the 12 copies that WIRE 6.3 asks for are lost once in 130 good-byes;
// a fast path sends more of them, for two seconds.
bool may_lose_goodbyes(const scenario::Scenario& scenario);

// Returns true if the operation's estimator has mean error zero under this network's losses, and
// results have no other error.
bool is_unbiased(const scenario::Scenario& scenario);
// Returns true if contributions have the same distribution on all ranks, per unit of work, and are
// encoded without bias.
bool has_alike_contributions(const scenario::Scenario& scenario);

}  // namespace leeway::sim
