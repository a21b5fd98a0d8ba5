// Reads whole numbers and times of Python. Times: numbers are seconds, text has a unit.
#pragma once

#include <nanobind/nanobind.h>

#include "leeway/types.h"

namespace leeway::python {

// Reads a whole number from `least` to `most`. Throws InvalidArgument naming `what`.
std::int64_t to_number(nanobind::handle value, const char* what, std::int64_t least,
                       std::int64_t most);

// Reads 0.02, "20ms", datetime.timedelta, or None for no deadline. Throws InvalidArgument naming
// `what`.
Duration to_duration(nanobind::handle value, const char* what);

// Returns seconds; no_deadline is infinity.
double to_seconds(Duration duration);

}  // namespace leeway::python
