// One seed of the adversary swarm: exact calls of a sealed job whose store and network people
// tamper with. Each ends with the right result or with an error, no nonce is used twice, and
// nothing is opened that its sender did not seal, or twice.
#pragma once

#include <cstdint>

#include "swarm/verdict.h"

namespace leeway::sim::adversary {

// `rounds`: calls that ended with the right result.
swarm::Verdict judge(std::uint64_t seed);

}  // namespace leeway::sim::adversary
