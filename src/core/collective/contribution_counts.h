// Counts the contributions to this rank's shard, for the report of a reduction.
#pragma once

#include <cstdint>
#include <span>

#include "estimate/scale_plan.h"
#include "leeway/report.h"
#include "protocol/flow.h"

namespace leeway::collective {

class ContributionCounts {
 public:
  void reset(int ranks) {
    *this = {};
    contributors_.histogram.assign(ranks + 1, 0);
  }

  // Counts a reduced packet of `elements` elements. `block` says how many ranks contributed to it,
  // and whether it is untouched, which means that no contribution was used.
  void on_reduced(const estimate::BlockScales& block, std::size_t elements) {
    if (block.untouched) untouched_ += elements;
    ++contributors_.histogram[block.contributors];
  }
  // Counts a contribution that was left out of a packet because it holds an infinity or a NaN.
  void on_left_out() { ++non_finite_; }
  // Counts missing and fetched contributions. Call it when no more packets will come. Returns true
  // if all packets have come.
  bool settle(std::span<const protocol::ReceiveFlow> flows, Rank self);

  void fill(CollectiveReport& report) const;

 private:
  ContributorStats contributors_;
  std::uint64_t untouched_ = 0;
  std::uint64_t non_finite_ = 0;
  std::uint32_t fetched_ = 0;  // peers whose first pass was lost whole, but not the repair
  std::uint32_t unheard_ = 0;  // peers of which no packet arrived
};

}  // namespace leeway::collective
