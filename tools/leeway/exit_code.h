// Exit codes of subcommands, and functions that print why a command failed.
#pragma once

#include <cstdio>

#include "leeway/status.h"

namespace leeway::tools {

inline constexpr int kExitFailed = 1;  // the command could not do its work, or its result is wrong
inline constexpr int kExitUsage = 2;   // a wrong command line, as a shell's own commands return it

inline int complain(const Status& status, int exit_code) {
  std::fprintf(stderr, "error: %s\n", status.c_str());
  return exit_code;
}

// Returns true if the error is the caller's mistake: an impossible argument, or one that differs
// between ranks.
inline bool is_usage(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kUnsupported || status.code() == StatusCode::kMismatch;
}

// Prints the error. Returns kExitUsage for a mistake of the caller, and kExitFailed otherwise.
inline int complain(const Status& status) {
  return complain(status, is_usage(status) ? kExitUsage : kExitFailed);
}

}  // namespace leeway::tools
