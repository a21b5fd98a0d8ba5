// Chooses the links that matter: those with the most traffic for their rate, and those that lose
// most.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "report/cell_summary.h"

namespace leeway::sim {

// Returns links with a rate, by falling utilisation.
std::vector<LinkSummary> busiest(std::vector<LinkSummary> links, std::size_t count);
// Returns the `count` links that lose the largest share of their packets, without lossless ones.
std::vector<LinkSummary> lossiest(std::vector<LinkSummary> links, std::size_t count);

struct LinkRow {
  const CellSummary* cell = nullptr;
  LinkSummary link;
};
// Returns the `count` lossiest links, each in the cell where it lost most. The `count` busiest
// links follow, each in the cell where it was busiest, without those listed already.
std::vector<LinkRow> noteworthy_links(std::span<const CellSummary> cells, std::size_t count);

}  // namespace leeway::sim
