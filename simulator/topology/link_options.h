// A scenario's link rules, in the units and options of link/.
#pragma once

#include <string>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "topology/link_properties.h"

namespace leeway::sim {

// Files are read here.
Result<DelayOptions> delay_options(const scenario::Delay& delay);
Result<std::vector<LossOptions>> loss_options(const scenario::Loss& loss);

// Returns all options of the queue but those of its line.
QueueOptions queue_options(const scenario::Queue& queue);

// Reads a file in mahimahi's format: whole or fractional ms.
Result<std::vector<std::int64_t>> deliveries_ns(const std::string& path);

}  // namespace leeway::sim
