// Converts a scenario's link rules to the options of link/.
#pragma once

#include <string>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "topology/link_properties.h"

namespace leeway::sim {

// Convert delays and losses, and read the files that these name.
Result<DelayOptions> delay_options(const scenario::Delay& delay);
Result<std::vector<LossOptions>> loss_options(const scenario::Loss& loss);

// Returns the options of the queue, without those of its line.
QueueOptions queue_options(const scenario::Queue& queue);

// Reads a delivery trace in mahimahi's format. Times are in ms, whole or with fractions.
Result<std::vector<std::int64_t>> deliveries_ns(const std::string& path);

}  // namespace leeway::sim
