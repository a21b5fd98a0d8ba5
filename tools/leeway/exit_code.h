// Exit codes of subcommands, and their texts about the reason.
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

// The caller's mistake: an argument that cannot be, or that differs between ranks.
inline bool is_usage(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kUnsupported || status.code() == StatusCode::kMismatch;
}

// A mistake of the caller's is an error of usage; everything else is a failure.
inline int complain(const Status& status) {
  return complain(status, is_usage(status) ? kExitUsage : kExitFailed);
}

}  // namespace leeway::tools
