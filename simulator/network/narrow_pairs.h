// How long packets may be between ordered pairs of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/contracts.h"

namespace leeway::sim {

class NarrowPairs {
 public:
  static constexpr std::uint32_t kAny = 0;

  explicit NarrowPairs(std::uint32_t ranks) : ranks_(ranks), rows_(ranks) {}

  // Lets packets of `bytes` at most pass from now on; kAny lets all pass.
  void set(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    LEEWAY_ASSERT(from < ranks_ && to < ranks_);
    if (rows_[from].empty()) rows_[from].resize(ranks_, kAny);
    any_ = true;
    rows_[from][to] = bytes;
  }

  bool passes(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) const {
    if (!any_) [[likely]]
      return true;
    return rows_[from].empty() || rows_[from][to] == kAny || bytes <= rows_[from][to];
  }

 private:
  std::uint32_t ranks_;
  bool any_ = false;                              // a pair was narrow at some time
  std::vector<std::vector<std::uint32_t>> rows_;  // by sending rank; empty until needed
};

}  // namespace leeway::sim
