// Runs one operation of operation.h on a communicator.
#pragma once

#include "leeway/communicator.h"
#include "perf/operation.h"

namespace leeway::tools::perf {

// Calls the operation. Equal memory for input and output means in place, where has_in_place()
// allows it.
Result<CollectiveReport> call(Communicator& communicator, Operation operation,
                              ConstTensorView input, TensorView output, Rank root,
                              const CollectiveOptions& options);

}  // namespace leeway::tools::perf
