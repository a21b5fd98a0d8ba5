// What a board says, as Prometheus has it. src/observe/README.md lists the names.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "observe/board.h"

namespace leeway::observe {

// More peers than these are shown as one, "others".
inline constexpr std::size_t kPeersShown = 64;

// Of all sheets together: a family has one place.
std::vector<prometheus::MetricFamily> exposition(const std::vector<Board::Sheet>& sheets);

}  // namespace leeway::observe
