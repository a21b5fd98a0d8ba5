// Rules that a scenario must fulfil beside the syntax.
//
// Limits of single fields are in proto/scenario.proto (field_limits.h); rules here concern several
// fields. An error gives the path of the field to change, its value, what is allowed and, with
// `places`, its place in the file.
#pragma once

#include <string>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "scenario/places.h"

namespace leeway::sim::scenario {

// Checks all rules and limits, in a fixed order, so that a scenario always gives the same first
// error.
Status validate(const Scenario& scenario, const Places& places = {});

// The parts of validate(). A part may assume that check_limits() passed, but not that another part
// passed.
Status check_operation(const Scenario& scenario, const Places& places);
Status check_links(const Scenario& scenario, const Places& places);
Status check_compute(const Scenario& scenario, const Places& places);
Status check_sweeps(const Scenario& scenario, const Places& places);

// Helpers of the functions that validate parts of a scenario. entry() returns the path of a list's
// entry, such as "link[3]". check_selector() returns an error that names `path` unless `text`
// chooses ranks.
std::string entry(const char* list, int index);
Status check_selector(const Scenario& scenario, const std::string& path, const std::string& text,
                      const Places& places);

}  // namespace leeway::sim::scenario
