#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "leeway/rendezvous.h"

namespace leeway::python {

// One of Leeway's own, or an object of Python that has put() and get().
std::shared_ptr<Rendezvous> to_rendezvous(nanobind::handle value);

void bind_rendezvous(nanobind::module_& module);

}  // namespace leeway::python
