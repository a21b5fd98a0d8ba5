// Payload formats.
#pragma once

#include <nanobind/nanobind.h>

#include "leeway/codec.h"

namespace leeway::python {

// "nvfp4:nearest", as parse_codec() reads it.
CodecOptions to_codec(nanobind::handle value, const char* what);

void bind_codec(nanobind::module_& module);

}  // namespace leeway::python
