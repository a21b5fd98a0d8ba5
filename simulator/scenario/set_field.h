// Changes one value of a scenario that is given as text, for sweeps and --set.
#pragma once

#include <string_view>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "scenario/field_path.h"

namespace leeway::sim::scenario {

// Numbers (whole ones also as 1e6), true and false, names of enumerations, texts with or without
// quotes, messages as in a file ("random { p: 0.1 }"; replaces the message), lists of values as
// "1, 2, 3" with or without brackets. Messages on the way are made when absent; entries of lists
// are not: link[2] must exist. Checks type and limits of what is set and no rule beyond it.
// An error changes nothing.
Status set_field(Scenario& scenario, const FieldPath& path, std::string_view value);
Status set_field(Scenario& scenario, std::string_view path, std::string_view value);

// "link[0].loss.random.p=0.01". A field that is set by hand is no longer swept: a sweep over it is
// removed, so that one cell of a grid is repeated by naming its settings.
Status apply_setting(Scenario& scenario, std::string_view assignment);

// The long form of a scenario that has one: its `full` settings, applied and taken away.
Status apply_full(Scenario& scenario);

}  // namespace leeway::sim::scenario
