// Converts times between Python and the library: numbers are seconds, text has a unit.
#pragma once

#include <nanobind/nanobind.h>

#include "leeway/types.h"

namespace leeway::python {

// Reads 0.02, "20ms", datetime.timedelta, or None for no deadline. Throws InvalidArgument naming
// `what`.
Duration to_duration(nanobind::handle value, const char* what);

// Returns seconds; no_deadline is infinity.
double to_seconds(Duration duration);

}  // namespace leeway::python
