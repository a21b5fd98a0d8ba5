// A whole scenario from one number: operation, topology, links and faults of every kind, small
// enough to run in some milliseconds.
//
// Every drawn scenario is valid, is complete without files, and prints as text format to the same
// scenario again. Draws are exact decimals, so that a person can read them. Equal on every compiler
// and machine; a change here changes what every seed means.
#pragma once

#include <cstdint>

#include "scenario.pb.h"

namespace leeway::sim::swarm {

// Rounds at the end, when faults are over. I9 ignores the first three of them and checks the
// others.
inline constexpr std::uint32_t kCalmRounds = 5;

// I9 is skipped if whole rounds are not promised: deadlines are deliberately short, queues overflow
// under a lossy class, or ranks crash. I10 is always skipped, because a few rounds are no
// statistics.
scenario::Scenario draw_scenario(std::uint64_t seed);

// Returns true if whole rounds are promised in the calm, so that I9 means something. Valid for
// scenarios like drawn ones only.
bool promises_recovery(const scenario::Scenario& scenario);

}  // namespace leeway::sim::swarm
