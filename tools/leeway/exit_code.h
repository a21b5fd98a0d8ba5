// What subcommands return to the shell, and how they say why.
#pragma once

#include <cstdio>

#include "leeway/status.h"

namespace leeway::tools {

inline constexpr int kExitFailed = 1;  // it could not be done, or its result is wrong
inline constexpr int kExitUsage = 2;   // a wrong command line, as a shell's own commands return it

inline int complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "error: %s\n", status.c_str());
  return exit_code;
}

// An argument that cannot be is the caller's mistake; everything else is a failure.
inline int complain(const Status& status) {
  const bool is_usage =
      status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kUnsupported;
  return complain(status, is_usage ? kExitUsage : kExitFailed);
}

}  // namespace leeway::tools
