// Simulates one random run, given by a seed, and judges it. A sealed job makes exact calls, while
// attackers change its store and network traffic. Each call must end with the right result or an
// error. No nonce may be used twice. A datagram may be opened only once, and only if its sender
// sealed it.
#pragma once

#include <cstdint>

#include "swarm/verdict.h"

namespace leeway::sim::adversary {

// Simulates the job and the attacks that `seed` determines, and judges the run. Verdict::rounds
// counts the calls that ended with the right result.
swarm::Verdict judge(std::uint64_t seed);

}  // namespace leeway::sim::adversary
