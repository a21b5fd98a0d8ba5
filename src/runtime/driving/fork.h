// A process that was forked has its parent's memory, and none of its threads.
#pragma once

#include "base/fork.h"
#include "leeway/status.h"

namespace leeway::driving {

// The status of every call, in the child, of a communicator that was made before a fork.
Status forked();

}  // namespace leeway::driving
