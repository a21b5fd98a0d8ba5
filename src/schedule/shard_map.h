// Says which rank owns which elements of a tensor. Pure arithmetic, the same on every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/contracts.h"
#include "leeway/types.h"

namespace leeway::schedule {

struct Shard {
  std::size_t offset = 0;  // elements
  std::size_t count = 0;
};

class ShardMap {
 public:
  // Cuts `count` elements into `size` shards that differ by at most kAlign elements; trailing
  // shards of a small tensor are empty. Shard borders fall on multiples of kAlign so that codec
  // blocks never straddle two owners.
  static ShardMap even(std::size_t count, int size) {
    const std::size_t blocks = (count + kAlign - 1) / kAlign;
    return ShardMap(count, blocks / size, blocks % size, kNoRank);
  }
  // `size` blocks of `block` elements each, whatever their alignment: the layout callers of
  // reduce_scatter see.
  static ShardMap blocks(std::size_t block, int size) {
    ShardMap map(block * size, 0, 0, kNoRank);
    map.block_ = block;
    return map;
  }
  // Blocks of lengths of their own, by rank, in a tensor of `count` elements. `shards` and
  // `positions` (by position_behind()) outlive the map.
  static ShardMap uneven(std::size_t count, std::span<const Shard> shards,
                         std::span<const std::size_t> positions) {
    ShardMap map(count, 0, 0, kNoRank);
    map.uneven_ = shards;
    map.positions_ = positions;
    return map;
  }
  // One rank owns everything.
  static ShardMap single(std::size_t count, Rank owner) { return ShardMap(count, 0, 0, owner); }

  Shard operator[](Rank rank) const {
    if (!uneven_.empty()) return uneven_[rank];
    if (owner_ != kNoRank) return rank == owner_ ? Shard{0, count_} : Shard{};
    if (block_ != 0) return {block_ * rank, block_};
    const std::size_t begin = kAlign * (rank * quotient_ + std::min<std::size_t>(rank, remainder_));
    const std::size_t length = kAlign * (quotient_ + (rank < remainder_ ? 1 : 0));
    const std::size_t offset = std::min(begin, count_);
    return {offset, std::min(length, count_ - offset)};
  }
  std::size_t count() const { return count_; }
  // The place of a shard that keyed random draws use: a multiple of kAlign, without overlap between
  // shards. It is the offset itself, unless the borders are the caller's.
  std::size_t position(Rank rank) const {
    if (!uneven_.empty()) return positions_[rank];
    return block_ == 0 ? (*this)[rank].offset : block_ * rank / kAlign * kAlign + kAlign * rank;
  }

  // The next position behind a shard of `count` elements at `position`, for uneven shards: it
  // depends on their lengths alone, which all ranks know.
  static std::size_t position_behind(std::size_t position, std::size_t count) {
    return position + (count + kAlign - 1) / kAlign * kAlign;
  }

  // Elements: two blocks of the largest codec block (32), so that later formats need no new layout.
  static constexpr std::size_t kAlign = 64;

 private:
  ShardMap(std::size_t count, std::size_t quotient, std::size_t remainder, Rank owner)
      : count_(count), quotient_(quotient), remainder_(remainder), owner_(owner) {}

  std::size_t count_ = 0;
  std::size_t quotient_ = 0;
  std::size_t remainder_ = 0;
  std::size_t block_ = 0;
  std::span<const Shard> uneven_;
  std::span<const std::size_t> positions_;
  Rank owner_ = kNoRank;
};

}  // namespace leeway::schedule
