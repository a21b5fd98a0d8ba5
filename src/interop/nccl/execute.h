// Runs NCCL's operations as calls of Leeway's communicator.
#pragma once

#include <span>

#include "interop/nccl/operation.h"
#include "leeway/communicator.h"

namespace leeway::nccl {

// Runs an operation, and blocks until it is done.
Result<CollectiveReport> run(Communicator& communicator, const Operation& operation);
// Starts an operation and returns at once. Its memory must stay valid until it is done.
Work start(Communicator& communicator, const Operation& operation);
// Starts sends and receives as one operation, so that they cannot deadlock in any order.
Work exchange(Communicator& communicator, std::span<const Operation> messages);

}  // namespace leeway::nccl
