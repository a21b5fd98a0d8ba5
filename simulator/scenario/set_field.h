// Changes one value of a scenario that is given as text, for sweeps and --set.
#pragma once

#include <string_view>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "scenario/field_path.h"

namespace leeway::sim::scenario {

// Sets the field at `path`. `value` is a number (whole ones also as 1e6), true or false, an
// enumeration value, a text with or without quotes, or a message as in a file ("random { p: 0.1
// }"), which replaces the old one. For a list it is "1, 2, 3" with or without brackets. Missing
// messages on the path are created, but list entries are not: link[2] must exist. Checks only type
// and limits of the value. An error changes nothing.
Status set_field(Scenario& scenario, const FieldPath& path, std::string_view value);
Status set_field(Scenario& scenario, std::string_view path, std::string_view value);

// Applies a text such as "link[0].loss.random.p=0.01" and removes a sweep over the field. So naming
// the settings of one cell repeats that cell.
Status apply_setting(Scenario& scenario, std::string_view assignment);

// Applies and removes the `full` settings, which turn a scenario into its long form.
Status apply_full(Scenario& scenario);

}  // namespace leeway::sim::scenario
