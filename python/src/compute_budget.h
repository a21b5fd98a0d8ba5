#pragma once

#include <nanobind/nanobind.h>

namespace leeway::python {

void bind_compute_budget(nanobind::module_& module);

}  // namespace leeway::python
