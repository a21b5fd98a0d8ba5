#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "leeway/rendezvous.h"

namespace leeway::python {

// Reads a store: one of Leeway's own, or a Python object that has put() and get().
std::shared_ptr<Rendezvous> to_rendezvous(nanobind::handle value);

}  // namespace leeway::python
