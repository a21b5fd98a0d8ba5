// Names in the environment that look like misspelt variables of Leeway. Nobody reads such a
// variable, so a job whose LEEWAY_SECRET_FILE is misspelt would run without its secret.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "leeway/status.h"

namespace leeway::rendezvous {

// A variable that looks like one of Leeway's, and that nobody reads.
struct OddVariable {
  std::string name;
  const char* meant = nullptr;  // the nearest name that means something, or null
  // True if `meant` protects the group, and nothing else in the environment does.
  bool leaves_open = false;

  std::string text() const;
};

// Variables that are not in environment_variables() because other parts of the project read them,
// most of them the drop-in for NCCL.
std::span<const char* const> names_read_elsewhere();

// Returns the odd ones among "NAME=value" entries. The last entry is null.
std::vector<OddVariable> odd_variables(const char* const* environment);

// Returns kInvalidArgument if a variable in `odd` leaves the group open.
Status check_names(const std::vector<OddVariable>& odd);

// Checks the environment of this process. Logs each odd variable once. Returns check_names()'s
// error.
Status check_process_names();

}  // namespace leeway::rendezvous
