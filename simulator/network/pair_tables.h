// Tables by ordered pair of ranks: pairs that a partition blocks, and pairs whose path allows only
// short packets.
#pragma once

#include <cstdint>
#include <vector>

#include "base/contracts.h"

namespace leeway::sim {

// A number for each ordered pair of ranks, 0 at first. The row of a sending rank is allocated at
// its first write.
template <typename T>
class PairTable {
 public:
  explicit PairTable(std::uint32_t ranks) : rows_(ranks) {}

  T& at(std::uint32_t from, std::uint32_t to) {
    LEEWAY_ASSERT(from < rows_.size() && to < rows_.size());
    if (rows_[from].empty()) rows_[from].resize(rows_.size());
    return rows_[from][to];
  }
  T get(std::uint32_t from, std::uint32_t to) const {
    return rows_[from].empty() ? T{} : rows_[from][to];
  }

 private:
  std::vector<std::vector<T>> rows_;  // by sending rank
};

// The pairs that cannot reach each other, with the number of partitions that block each pair.
class BlockedPairs {
 public:
  explicit BlockedPairs(std::uint32_t ranks) : times_(ranks) {}

  void block(std::uint32_t from, std::uint32_t to) {
    std::uint16_t& times = times_.at(from, to);
    LEEWAY_ASSERT(times < UINT16_MAX);
    blocked_ += times++ == 0;
  }

  void unblock(std::uint32_t from, std::uint32_t to) {
    std::uint16_t& times = times_.at(from, to);
    LEEWAY_ASSERT(times > 0);
    blocked_ -= --times == 0;
  }

  bool any() const { return blocked_ > 0; }

  bool contains(std::uint32_t from, std::uint32_t to) const {
    if (blocked_ == 0) [[likely]]
      return false;
    return times_.get(from, to) > 0;
  }

 private:
  PairTable<std::uint16_t> times_;
  std::uint64_t blocked_ = 0;  // number of blocked pairs
};

// The length of the longest packet that may pass, for each ordered pair of ranks.
class NarrowPairs {
 public:
  static constexpr std::uint32_t kAny = 0;

  explicit NarrowPairs(std::uint32_t ranks) : bytes_max_(ranks) {}

  // Lets packets of `bytes` at most pass from now on; kAny lets all pass.
  void set(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) {
    any_ = true;
    bytes_max_.at(from, to) = bytes;
  }

  bool passes(std::uint32_t from, std::uint32_t to, std::uint32_t bytes) const {
    if (!any_) [[likely]]
      return true;
    const std::uint32_t bytes_max = bytes_max_.get(from, to);
    return bytes_max == kAny || bytes <= bytes_max;
  }

 private:
  PairTable<std::uint32_t> bytes_max_;
  bool any_ = false;  // a pair was narrow at some time
};

}  // namespace leeway::sim
