// Places of each rank's block in the caller's buffers, for every collective that moves data.
#pragma once

#include "collective/operation_plan.h"
#include "collective/operation_spec.h"

namespace leeway::collective {

// Fills in which blocks are sent and received by plan.spread; its lists must have the group's size,
// and be empty. Also copies this rank's own block to its place. `barrier` is two bytes: the one
// that a barrier sends, and the one where it receives.
void place_blocks(const OperationSpec& spec, std::byte* barrier, OperationPlan& plan);

}  // namespace leeway::collective
