#pragma once

#include <nanobind/nanobind.h>

namespace leeway::python {

// Bindings of Replica and LateWork.
void bind_replica(nanobind::module_& module);

}  // namespace leeway::python
