// Which ordered pairs of ranks cannot reach each other, and how many partitions block each pair.
#pragma once

#include <cstdint>
#include <vector>

#include "base/contracts.h"

namespace leeway::sim {

class BlockedPairs {
 public:
  explicit BlockedPairs(std::uint32_t ranks) : ranks_(ranks), rows_(ranks) {}

  void block(std::uint32_t from, std::uint32_t to) {
    std::uint16_t& times = times_of(from, to);
    LEEWAY_ASSERT(times < UINT16_MAX);
    blocked_ += times++ == 0;
  }

  void unblock(std::uint32_t from, std::uint32_t to) {
    std::uint16_t& times = times_of(from, to);
    LEEWAY_ASSERT(times > 0);
    blocked_ -= --times == 0;
  }

  bool any() const { return blocked_ > 0; }

  bool contains(std::uint32_t from, std::uint32_t to) const {
    if (blocked_ == 0) [[likely]]
      return false;
    return !rows_[from].empty() && rows_[from][to] > 0;
  }

 private:
  std::uint16_t& times_of(std::uint32_t from, std::uint32_t to) {
    LEEWAY_ASSERT(from < ranks_ && to < ranks_);
    if (rows_[from].empty()) rows_[from].resize(ranks_, 0);
    return rows_[from][to];
  }

  std::uint32_t ranks_;
  std::uint64_t blocked_ = 0;                     // pairs
  std::vector<std::vector<std::uint16_t>> rows_;  // by sending rank; empty until needed
};

}  // namespace leeway::sim
