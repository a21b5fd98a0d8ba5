// Reduces a failing scenario to a small one that fails in the same way, for people to read.
//
// Tries one change at a time until none keeps the failure: first fewer ranks, rounds and bytes,
// then removing single faults, link rules and settings, in the order of the schema. Deterministic.
#pragma once

#include <functional>

#include "scenario.pb.h"

namespace leeway::sim::swarm {

using Fails = std::function<bool(const scenario::Scenario& scenario)>;

// Calls `fails` at most `tries_max` times, and only with valid scenarios.
scenario::Scenario shrink(const scenario::Scenario& scenario, const Fails& fails,
                          unsigned tries_max);

}  // namespace leeway::sim::swarm
