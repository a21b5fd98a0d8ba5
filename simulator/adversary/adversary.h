// One seed of the adversary swarm: exact calls of a sealed job. Attackers change its store and its
// network traffic. Each call ends with the right result or with an error. No nonce is used twice.
// No datagram is opened twice, or without its sender having sealed it.
#pragma once

#include <cstdint>

#include "swarm/verdict.h"

namespace leeway::sim::adversary {

// Runs the seed. The verdict's `rounds` is the number of calls that ended with the right result.
swarm::Verdict judge(std::uint64_t seed);

}  // namespace leeway::sim::adversary
