// The parts of the module, each of which adds its classes and functions to it.
#pragma once

#include <nanobind/nanobind.h>

namespace leeway::python {

void bind_arrays(nanobind::module_& module);
void bind_codec(nanobind::module_& module);
void bind_collective_options(nanobind::module_& module);
void bind_communicator(nanobind::module_& module);
void bind_compute_budget(nanobind::module_& module);
void bind_errors(nanobind::module_& module);
void bind_rendezvous(nanobind::module_& module);
void bind_replica(nanobind::module_& module);
void bind_report(nanobind::module_& module);
void bind_work(nanobind::module_& module);

}  // namespace leeway::python
