// How many contributions entered each packet-sized block of the owned shard: the report's
// ContributorStats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "leeway/report.h"

namespace leeway::aggregate {

class ContributorTally {
 public:
  explicit ContributorTally(int size = 0) { reset(size); }

  void reset(int size) {
    histogram_.assign(static_cast<std::size_t>(size) + 1, 0);
    sum_ = 0;
    blocks_ = 0;
  }

  // contributors <= size
  void add(std::uint32_t contributors, std::uint64_t blocks = 1) {
    histogram_[contributors] += blocks;
    sum_ += contributors * blocks;
    blocks_ += blocks;
  }

  ContributorStats stats() const {
    ContributorStats stats;
    stats.histogram = histogram_;
    if (blocks_ == 0) return stats;
    const auto first =
        std::find_if(histogram_.begin(), histogram_.end(), [](std::uint64_t n) { return n > 0; });
    stats.min = static_cast<std::uint32_t>(first - histogram_.begin());
    stats.mean = static_cast<double>(sum_) / static_cast<double>(blocks_);
    return stats;
  }

 private:
  std::vector<std::uint64_t> histogram_;
  std::uint64_t sum_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace leeway::aggregate
