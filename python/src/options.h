// Bindings of the options of a communicator, field by field.
#pragma once

#include <nanobind/nanobind.h>

#include "leeway/options.h"

namespace leeway::python {

// The environment's options, with these fields changed.
Options options_from(const nanobind::kwargs& fields);
// The options as a dictionary, for people.
nanobind::dict shown(const Options& options);

}  // namespace leeway::python
