// leeway._core: the C++ interface for Python. The package around it is python/leeway.
#include <nanobind/nanobind.h>

#include "bindings.h"
#include "leeway/version.h"

NB_MODULE(_core, module) {
  using namespace leeway::python;
  // No warnings: a program may end while communicators exist and a thread waits for calls.
  nanobind::set_leak_warnings(false);
  module.attr("__version__") = LEEWAY_VERSION_STRING;
  bind_errors(module);
  bind_arrays(module);
  bind_codec(module);
  bind_report(module);
  bind_work(module);
  bind_collective_options(module);
  bind_rendezvous(module);
  bind_communicator(module);
  bind_replica(module);
  bind_compute_budget(module);
}
