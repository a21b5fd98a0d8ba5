// Rows as JSON, for programs: one array of objects.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "perf/communicators.h"
#include "perf/settings.h"
#include "perf/table.h"

namespace leeway::tools::perf {

// Bandwidths here are those of time_us_p50 (the table's are those of the mean, as in nccl-tests).
// loss_observed is the share that the network lost on the first pass, and loss_residual the share
// still missing after repair. `wrong` is null if bits cannot be compared, spread_codec if there is
// no spread half, and gradient_to_noise if there was no noise. Where calls were made back to back,
// `back_to_back` says how many, and `datagrams`, `bytes_sent` and `processor_us` what a call cost
// all ranks together. `communicators` is there where further ones were open.
std::string to_json(std::span<const Row> rows, const Settings& settings, const FaultOptions& faults,
                    int ranks, const std::optional<CommunicatorCost>& cost = std::nullopt);

}  // namespace leeway::tools::perf
