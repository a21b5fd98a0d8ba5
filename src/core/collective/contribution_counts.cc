#include "collective/contribution_counts.h"

#include <limits>

namespace leeway::collective {

bool ContributionCounts::settle(std::span<const protocol::ReceiveFlow> flows, Rank self) {
  bool complete = true;
  for (Rank rank = 0; rank + std::size_t{1} < contributors_.histogram.size(); ++rank) {
    const protocol::ReceiveFlow& flow = flows[rank];
    if (rank == self || flow.packets == 0) continue;
    complete &= flow.complete();
    unheard_ += flow.arrived_count == 0;
    fetched_ += flow.arrived_count > 0 && flow.arrived_count == flow.repaired;
  }
  return complete;
}

void ContributionCounts::fill(CollectiveReport& report) const {
  const auto ranks = static_cast<std::uint32_t>(contributors_.histogram.size() - 1);
  std::uint64_t packets = 0;
  std::uint64_t contributions = 0;
  for (std::size_t k = 0; k <= ranks; ++k) {
    packets += contributors_.histogram[k];
    contributions += k * contributors_.histogram[k];
  }
  report.contributors = contributors_;
  report.contributors.min = ranks;
  for (std::uint32_t k = ranks + 1; k-- > 0;) {
    if (contributors_.histogram[k] > 0) report.contributors.min = k;
  }
  report.contributors.mean =
      packets == 0 ? ranks : static_cast<double>(contributions) / static_cast<double>(packets);
  report.elements_untouched = untouched_;
  report.non_finite = non_finite_;
  const bool lossless = contributors_.histogram.back() == packets;
  report.variance_estimate = lossless ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  report.contributions_fetched = fetched_;
  report.contributions_missing = unheard_;
}

}  // namespace leeway::collective
