// What link rules of a scenario say, in the units and options of link/.
#pragma once

#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "topology/link_properties.h"

namespace leeway::sim {

// Files are read here.
Result<DelayOptions> delay_options(const scenario::Delay& delay);
Result<std::vector<LossOptions>> loss_options(const scenario::Loss& loss);

// All but the rate.
QueueOptions queue_options(const scenario::Queue& queue);

}  // namespace leeway::sim
