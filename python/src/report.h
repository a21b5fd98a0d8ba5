#pragma once

#include <nanobind/nanobind.h>

namespace leeway::python {

void bind_report(nanobind::module_& module);

}  // namespace leeway::python
