// Selectors: texts that choose ranks. "3", "0-7", "8-" (to the last), "eu" (a group), "*", and
// lists of these, "0-3,9".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim::scenario {

// Returns the chosen ranks in rising order, each once; there is at least one. Refuses unknown
// groups (the error gives the nearest name), ranks that the scenario does not have, and falling
// ranges.
Result<std::vector<std::uint32_t>> ranks_of(const Scenario& scenario, std::string_view selector);

}  // namespace leeway::sim::scenario
