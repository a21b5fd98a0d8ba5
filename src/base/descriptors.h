// Errors of system calls that find no free descriptor.
#pragma once

#include <cerrno>

#include "leeway/status.h"

namespace leeway {

// Returns whether this process, or the machine, has no descriptor left.
constexpr bool lacks_descriptors(int error) {
  return error == EMFILE || error == ENFILE;
}

// Returns a hint for the error's text that names the limit to raise, or an empty text.
constexpr const char* descriptor_hint(int error) {
  return error == EMFILE ? " (ulimit -n)" : error == ENFILE ? " (sysctl fs.file-max)" : "";
}

// Returns kResourceExhausted if descriptors ran out, otherwise `otherwise`.
constexpr StatusCode code_without(int error, StatusCode otherwise) {
  return lacks_descriptors(error) ? StatusCode::kResourceExhausted : otherwise;
}

}  // namespace leeway
