// Places of each rank's block in the caller's buffers, for every collective that moves data.
#pragma once

#include "collective/operation_plan.h"
#include "collective/operation_spec.h"

namespace leeway::collective {

// Fills in plan.spread.send and plan.spread.receive, which must hold an empty block for each rank.
// Also copies this rank's own block to its place in the output. `barrier`: two bytes; a barrier
// sends the first one, and receives into the second one.
void place_blocks(const OperationSpec& spec, std::byte* barrier, OperationPlan& plan);

}  // namespace leeway::collective
