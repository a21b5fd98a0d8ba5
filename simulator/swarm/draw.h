// Draws a whole scenario from a seed: operation, topology, links and faults of every kind. The
// scenario is small enough to run in milliseconds.
//
// Every drawn scenario is valid, needs no files, and survives printing and parsing unchanged. Drawn
// numbers are exact decimals, so that people can read them. Results are equal on every compiler and
// machine. A change of a draw changes what every seed means.
#pragma once

#include <cstdint>

#include "scenario.pb.h"

namespace leeway::sim::swarm {

// Number of rounds at the end of a scenario, after all faults are over. Invariant I9 is that all
// but the first three of these rounds are complete.
inline constexpr std::uint32_t kCalmRounds = 5;

// The drawn scenario skips I9 if nothing promises complete rounds. Reasons are, for example,
// deadlines that are too short on purpose, queues that overflow under a lossy class, or a crash.
// The scenario always skips I10 (no bias), because a few rounds are no statistics.
scenario::Scenario draw_scenario(std::uint64_t seed);

// Returns true if complete rounds are promised in the calm, so that I9 can be checked. Valid only
// for scenarios like those that draw_scenario() draws.
bool promises_recovery(const scenario::Scenario& scenario);

}  // namespace leeway::sim::swarm
