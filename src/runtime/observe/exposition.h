// The content of boards as Prometheus metrics. src/runtime/observe/README.md lists the names.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "observe/board.h"

namespace leeway::observe {

// Peers that are shown one by one; all others are shown together as "others".
inline constexpr std::size_t kPeersShown = 64;

// Returns the metrics of all sheets together, because each metric family may appear only once in an
// answer.
std::vector<prometheus::MetricFamily> exposition(const std::vector<Board::Sheet>& sheets);

}  // namespace leeway::observe
