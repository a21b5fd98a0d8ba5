// Bindings of payload formats.
#pragma once

#include <nanobind/nanobind.h>

#include "leeway/codec.h"

namespace leeway::python {

// Reads text such as "nvfp4:nearest", as parse_codec() does.
CodecOptions to_codec(nanobind::handle value, const char* what);

}  // namespace leeway::python
