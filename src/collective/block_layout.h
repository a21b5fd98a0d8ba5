// Where each rank's block lies in the caller's buffers, for every collective that moves data.
#pragma once

#include "collective/operation_spec.h"
#include "collective/spread.h"

namespace leeway::collective {

// Fills plan.send and plan.receive (already of the group's size) and puts this rank's own block
// where it belongs. `barrier` is two bytes: what a barrier sends and where it receives.
void place_blocks(const OperationSpec& spec, std::byte* barrier, SpreadPlan& plan);

}  // namespace leeway::collective
