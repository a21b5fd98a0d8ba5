// Draws a whole scenario from a seed: operation, topology, links and faults of every kind. It is
// small enough to run in milliseconds.
//
// Every drawn scenario is valid, needs no files, and survives printing and parsing unchanged. Draws
// are exact decimals, so that people can read them. Results are equal on every compiler and
// machine. A change here changes what every seed means.
#pragma once

#include <cstdint>

#include "scenario.pb.h"

namespace leeway::sim::swarm {

// Rounds at the end of a scenario, after all faults are over. I9 checks them except for the first
// three.
inline constexpr std::uint32_t kCalmRounds = 5;

// I9 is skipped if whole rounds are not promised: deadlines are too short on purpose, queues
// overflow under a lossy class, or ranks crash. I10 is always skipped, because a few rounds are no
// statistics.
scenario::Scenario draw_scenario(std::uint64_t seed);

// Returns true if whole rounds are promised in the calm, so that I9 can be checked. Valid only for
// scenarios like the drawn ones.
bool promises_recovery(const scenario::Scenario& scenario);

}  // namespace leeway::sim::swarm
