// Operations as calls of Leeway's communicator.
#pragma once

#include <span>

#include "interop/nccl/operation.h"
#include "leeway/communicator.h"

namespace leeway::nccl {

// Blocks until it is done.
Result<CollectiveReport> run(Communicator& communicator, const Operation& operation);
// Returns at once. The operation's memory must stay.
Work start(Communicator& communicator, const Operation& operation);
// Sends and receives, as one operation: no order of theirs can block.
Work exchange(Communicator& communicator, std::span<const Operation> messages);

}  // namespace leeway::nccl
