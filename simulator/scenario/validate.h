// Rules that a scenario must fulfil beyond being well-formed text.
//
// Limits of single fields are stated in proto/scenario.proto (field_limits.h); the rules here are
// about several fields together. Each rule refuses with the path of the field to change, its value,
// what is allowed and, given the places, where it stands in the file.
#pragma once

#include <string>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "scenario/places.h"

namespace leeway::sim::scenario {

// Checks everything, limits included, in a fixed order, so that the first error is always the same
// one.
Status validate(const Scenario& scenario, const Places& places = {});

// The parts of validate(). No part may assume another one, except that all may assume the limits.
Status check_operation(const Scenario& scenario, const Places& places);
Status check_links(const Scenario& scenario, const Places& places);
Status check_compute(const Scenario& scenario, const Places& places);
Status check_sweeps(const Scenario& scenario, const Places& places);

// Helpers of several rules. entry(): "link[3]". check_selector(): whether the text at `path`
// chooses ranks.
std::string entry(const char* list, int index);
Status check_selector(const Scenario& scenario, const std::string& path, const std::string& text,
                      const Places& places);

}  // namespace leeway::sim::scenario
