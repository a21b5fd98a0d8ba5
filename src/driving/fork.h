// A process that was forked has its parent's memory, and none of its threads.
#pragma once

#include <cstdint>

#include "leeway/status.h"

namespace leeway::driving {

// Counts the forks that led to this process, from the first call on.
std::uint32_t fork_generation();

// What every call of a communicator that was made before a fork says in the child.
Status forked();

}  // namespace leeway::driving
