// A process that was forked has its parent's memory, and none of its threads.
#pragma once

#include "base/fork.h"
#include "leeway/status.h"

namespace leeway::driving {

// What every call of a communicator that was made before a fork says in the child.
Status forked();

}  // namespace leeway::driving
