// Ranks that satisfy a condition, in order, for a range-based for.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>

#include "leeway/types.h"

namespace leeway::protocol {

// `Takes` is called with a rank below `size`, and returns whether the range contains that rank.
template <typename Takes>
class RankRange {
 public:
  class Iterator {
   public:
    using value_type = Rank;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(const RankRange& range) : range_(&range) { skip(); }
    Rank operator*() const { return rank_; }
    Iterator& operator++() {
      ++rank_;
      skip();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return rank_ >= range_->size_; }

   private:
    void skip() {
      while (rank_ < range_->size_ && !range_->takes_(rank_)) ++rank_;
    }

    const RankRange* range_;
    Rank rank_ = 0;
  };

  RankRange(int size, Takes takes) : size_(static_cast<Rank>(size)), takes_(std::move(takes)) {}
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }
  bool empty() const { return begin() == end(); }

 private:
  Rank size_;
  Takes takes_;
};

}  // namespace leeway::protocol
