// From a scenario that fails to a small one that fails the same way, for a person to look at.
//
// Tries less of everything, one change at a time, over and over until no change is left that keeps
// the failure: fewer ranks, rounds and bytes, then every fault, link rule and setting left out in
// the order of the schema. Deterministic.
#pragma once

#include <functional>

#include "scenario.pb.h"

namespace leeway::sim::swarm {

using Fails = std::function<bool(const scenario::Scenario& scenario)>;

// Asks `fails` at most `tries_max` times, and about valid scenarios only.
scenario::Scenario shrink(const scenario::Scenario& scenario, const Fails& fails,
                          unsigned tries_max);

}  // namespace leeway::sim::swarm
