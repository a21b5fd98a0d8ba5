// Properties of a scenario's network that decide which invariants can be checked.
#pragma once

#include "scenario.pb.h"

namespace leeway::sim {

// Packets of a pair never overtake each other, and every loss is told to the network's observer.
bool keeps_order(const scenario::Scenario& scenario);

// For a while nothing at all may pass between two ranks, but for bursts of losses.
bool has_outages(const scenario::Scenario& scenario);

// A rank may be silent to another for many time-outs though both live and run: it is cut off, or
// all probes may be lost.
bool may_silence(const scenario::Scenario& scenario);

// All copies of a good-bye may be lost: losses come in bursts, which are counted in packets, or
// independent ones take more than two packets of three on the longest way. At two of three the 12
// copies that WIRE 6.3 asks for are lost once in 130 good-byes; a fast path sends more of them, for
// two seconds.
bool may_lose_goodbyes(const scenario::Scenario& scenario);

// The operation's estimator has mean error zero under this network's losses, and nothing else puts
// an error on results.
bool is_unbiased(const scenario::Scenario& scenario);
// Contributions have the same distribution on all ranks, per unit of work, and are encoded without
// bias.
bool has_alike_contributions(const scenario::Scenario& scenario);

}  // namespace leeway::sim
