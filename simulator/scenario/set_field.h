// Changes one value of a scenario that is given as text, for sweeps and --set.
#pragma once

#include <string_view>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "scenario/field_path.h"

namespace leeway::sim::scenario {

// Takes numbers (whole ones also as 1e6), true and false, names of enumerations, texts with or
// without quotes, messages as in a file ("random { p: 0.1 }"; replaces the message), lists of
// values as "1, 2, 3" with or without brackets. Missing messages on the path are made, but entries
// of lists are not: link[2] must exist. Only type and limits of the value are checked. An error
// changes nothing.
Status set_field(Scenario& scenario, const FieldPath& path, std::string_view value);
Status set_field(Scenario& scenario, std::string_view path, std::string_view value);

// Applies a text such as "link[0].loss.random.p=0.01". A sweep over the field is removed. So one
// cell of a grid can be repeated by naming its settings.
Status apply_setting(Scenario& scenario, std::string_view assignment);

// Applies the `full` settings of a scenario that has a long form, and removes them.
Status apply_full(Scenario& scenario);

}  // namespace leeway::sim::scenario
