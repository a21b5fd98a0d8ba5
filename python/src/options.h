// Bindings of the options of a communicator, field by field.
#pragma once

#include <nanobind/nanobind.h>

#include "leeway/options.h"

namespace leeway::python {

// Returns the options from the environment, with `fields` changed.
Options options_from(const nanobind::kwargs& fields);
// Returns the options as a dictionary, for people to read.
nanobind::dict shown(const Options& options);

}  // namespace leeway::python
