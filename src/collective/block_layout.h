// Where each rank's block lies in the caller's buffers, for every collective that moves data.
#pragma once

#include "collective/operation_plan.h"
#include "collective/operation_spec.h"

namespace leeway::collective {

// Fills in who sends what to whom in plan.spread (its blocks are of the group's size, and empty),
// and puts this rank's own block where it belongs. `barrier` is two bytes: what a barrier sends and
// where it receives.
void place_blocks(const OperationSpec& spec, std::byte* barrier, OperationPlan& plan);

}  // namespace leeway::collective
