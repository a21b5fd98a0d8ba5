// Changes one value of a scenario. Sweeps and --set give the new value as text.
#pragma once

#include <string_view>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "scenario/field_path.h"

namespace leeway::sim::scenario {

// Sets the field at `path`. `value` is a number (a whole number also as 1e6), true or false, an
// enumeration value, a text with or without quotes, or a message as in a file ("random { p: 0.1
// }"), which replaces the old message. For a list it is "1, 2, 3" with or without brackets. Missing
// messages on the path are created, but list entries are not: link[2] must exist. Checks only type
// and limits of the value. An error changes nothing.
Status set_field(Scenario& scenario, const FieldPath& path, std::string_view value);
Status set_field(Scenario& scenario, std::string_view path, std::string_view value);

// Applies a text such as "link[0].loss.random.p=0.01", and removes any sweep over the field. So a
// command that gives all settings of one cell of a grid repeats that cell.
Status apply_setting(Scenario& scenario, std::string_view assignment);

// Applies and removes the `full` settings, which turn a scenario into its long form.
Status apply_full(Scenario& scenario);

}  // namespace leeway::sim::scenario
