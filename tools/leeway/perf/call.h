// Makes a call of one of the operations that operation.h lists.
#pragma once

#include "leeway/communicator.h"
#include "perf/operation.h"

namespace leeway::tools::perf {

// Calls the operation. It works in place if input and output are the same memory, which only
// operations of has_in_place() permit.
Result<CollectiveReport> call(Communicator& communicator, Operation operation,
                              ConstTensorView input, TensorView output, Rank root,
                              const CollectiveOptions& options);

}  // namespace leeway::tools::perf
