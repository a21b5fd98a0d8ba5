// Rows as JSON, for programs: one array of objects.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "perf/communicators.h"
#include "perf/settings.h"
#include "perf/table.h"

namespace leeway::tools::perf {

// Bandwidths in JSON are computed from time_us_p50 (those in the table from the mean, as in
// nccl-tests). loss_observed is the share that the network lost on the first pass; loss_residual is
// the share still missing after repair. `wrong` is null if results need not be exact, spread_codec
// if there is no spread half, and gradient_to_noise if there was no noise.
//
// If calls were made back to back, `back_to_back` is their number in a batch, and `datagrams`,
// `bytes_sent` and `processor_us` are the costs of one call summed over ranks. `communicators` is
// present if further communicators were open.
std::string to_json(std::span<const Row> rows, const Settings& settings, const FaultOptions& faults,
                    int ranks, const std::optional<CommunicatorCost>& cost = std::nullopt);

}  // namespace leeway::tools::perf
