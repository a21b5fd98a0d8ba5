// Turns a scenario that fails into a small one that fails the same way, for a person to read.
//
// Tries one change at a time, until no change is left that keeps the failure: first fewer ranks,
// rounds and bytes, then without one of the faults, link rules and settings, in the order of the
// schema. Deterministic.
#pragma once

#include <functional>

#include "scenario.pb.h"

namespace leeway::sim::swarm {

using Fails = std::function<bool(const scenario::Scenario& scenario)>;

// Asks `fails` at most `tries_max` times, and about valid scenarios only.
scenario::Scenario shrink(const scenario::Scenario& scenario, const Fails& fails,
                          unsigned tries_max);

}  // namespace leeway::sim::swarm
