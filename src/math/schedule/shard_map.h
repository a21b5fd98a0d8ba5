// Maps ranks to the elements of a tensor that they own. Pure arithmetic, the same on every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  // Cuts `count` elements into `size` shards that differ by less than 2 kAlign elements; trailing
  // shards of a small tensor are empty. Shard borders fall on multiples of kAlign so that codec
  // blocks never straddle two owners.
  static ShardMap even(std::size_t count, int size) { return among(count, size, size, 0); }
  // Cuts the tensor into the fewest shards of at most `fitting` elements each (what a datagram
  // holds), but at most `size` shards (WIRE 2.9). `turn`, the number of the call, rotates the
  // owners among the ranks, so that every rank owns as often as any other. If all ranks own, it is
  // the same as even().
  static ShardMap few(std::size_t count, int size, std::size_t fitting, std::uint32_t turn) {
    const std::size_t most = std::max(fitting / kAlign * kAlign, kAlign);
    const std::size_t owners =
        std::clamp<std::size_t>((count + most - 1) / most, 1, static_cast<std::size_t>(size));
    return among(count, size, owners, static_cast<Rank>(turn * std::uint64_t{owners} % size));
  }
  // Cuts into `size` blocks of `block` elements each, whatever their alignment: the layout that
  // callers of reduce_scatter see.
  static ShardMap blocks(std::size_t block, int size) {
    ShardMap map(block * size, kNoRank);
    map.block_ = block;
    return map;
  }
  // Cuts into blocks of individual lengths, by rank, in a tensor of `count` elements. `shards` and
  // `positions` (by position_behind()) must outlive the map.
  static ShardMap uneven(std::size_t count, std::span<const Shard> shards,
                         std::span<const std::size_t> positions) {
    ShardMap map(count, kNoRank);
    map.uneven_ = shards;
    map.positions_ = positions;
    return map;
  }
  // One rank owns everything.
  static ShardMap single(std::size_t count, Rank owner) { return ShardMap(count, owner); }

  Shard operator[](Rank rank) const {
    if (!uneven_.empty()) return uneven_[rank];
    if (owner_ != kNoRank) return rank == owner_ ? Shard{0, count_} : Shard{};
    if (block_ != 0) return {block_ * rank, block_};
    const std::size_t place = rank >= first_ ? rank - first_ : rank + size_ - first_;
    if (place >= owners_) return {};
    const std::size_t begin = kAlign * (place * quotient_ + std::min(place, remainder_));
    const std::size_t length = kAlign * (quotient_ + (place < remainder_ ? 1 : 0));
    const std::size_t offset = std::min(begin, count_);
    return {offset, std::min(length, count_ - offset)};
  }
  std::size_t count() const { return count_; }
  // Number of ranks among which few() or even() cut the tensor.
  std::size_t owners() const { return owners_; }
  // Place of a shard in keyed random draws: a multiple of kAlign, without overlap between shards.
  // It equals the shard's offset for all maps but blocks() and uneven().
  std::size_t position(Rank rank) const {
    if (!uneven_.empty()) return positions_[rank];
    return block_ == 0 ? (*this)[rank].offset : block_ * rank / kAlign * kAlign + kAlign * rank;
  }

  // Returns the position() of the shard behind a shard of `count` elements at `position`, for
  // uneven(). It depends only on lengths of shards, which all ranks know.
  static std::size_t position_behind(std::size_t position, std::size_t count) {
    return position + (count + kAlign - 1) / kAlign * kAlign;
  }

  // Alignment of shards in elements. Packets must start at multiples of 32
  // (codec::kPacketElementsMultiple). Shards are aligned to twice that, so that later formats may
  // have larger blocks in the same layout.
  static constexpr std::size_t kAlign = 64;

 private:
  ShardMap(std::size_t count, Rank owner) : count_(count), owner_(owner) {}

  // Makes `owners` shards. Rank `first` owns the first shard, and the following ranks own the next
  // shards, cyclically.
  static ShardMap among(std::size_t count, int size, std::size_t owners, Rank first) {
    const std::size_t blocks = (count + kAlign - 1) / kAlign;
    ShardMap map(count, kNoRank);
    map.quotient_ = blocks / owners;
    map.remainder_ = blocks % owners;
    map.size_ = static_cast<std::size_t>(size);
    map.owners_ = owners;
    map.first_ = first;
    return map;
  }

  std::size_t count_ = 0;
  std::size_t quotient_ = 0;   // blocks of kAlign elements in each shard
  std::size_t remainder_ = 0;  // number of shards with one more block
  std::size_t size_ = 0;
  std::size_t owners_ = 0;
  Rank first_ = 0;
  std::size_t block_ = 0;
  std::span<const Shard> uneven_;
  std::span<const std::size_t> positions_;
  Rank owner_ = kNoRank;
};

}  // namespace leeway::schedule
