// Searches for the best compute threshold in a program that has the latencies of all ranks. In the
// library each rank has only its own.
#pragma once

#include "base/contracts.h"
#include "budget/threshold_search.h"

namespace leeway::testing {

// `latencies_ns` has the time of every micro-batch, as [rank][step][micro-batch].
inline budget::ThresholdChoice best_threshold(
    std::span<const std::int64_t> latencies_ns, std::uint32_t ranks, std::uint32_t micro_batches,
    Duration wall, const budget::ThresholdSearchOptions& options = {},
    std::optional<std::uint32_t> stop_share_1024 = std::nullopt) {
  budget::ThresholdSearch search(options);
  const std::size_t each = std::size_t{options.steps} * micro_batches;
  LEEWAY_ASSERT(latencies_ns.size() == ranks * each);
  const auto of_rank = [&](std::uint32_t rank) {
    return budget::LatencyTable{.ns = latencies_ns.subspan(rank * each, each),
                                .micro_batches = micro_batches,
                                .stop_share_1024 = stop_share_1024};
  };
  for (std::uint32_t rank = 0; rank < ranks; ++rank) search.add_bounds(of_rank(rank), wall);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) search.add_tables(of_rank(rank));
  return search.choose();
}

}  // namespace leeway::testing
