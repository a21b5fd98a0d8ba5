// What system calls say that get no descriptor.
#pragma once

#include <cerrno>

#include "leeway/status.h"

namespace leeway {

// Whether this process, or the machine, has no descriptor left.
constexpr bool lacks_descriptors(int error) {
  return error == EMFILE || error == ENFILE;
}

// What to add to the error's own text: which limit to raise.
constexpr const char* descriptor_hint(int error) {
  return error == EMFILE ? " (ulimit -n)" : error == ENFILE ? " (sysctl fs.file-max)" : "";
}

// kResourceExhausted where descriptors lack, else `otherwise`.
constexpr StatusCode code_without(int error, StatusCode otherwise) {
  return lacks_descriptors(error) ? StatusCode::kResourceExhausted : otherwise;
}

}  // namespace leeway
