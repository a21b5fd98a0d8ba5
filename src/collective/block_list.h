// Where blocks of different lengths lie in one of the caller's buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/shapes.h"
#include "leeway/types.h"

namespace leeway::collective {

// A copy of what the caller said (Blocks). Nothing of it is checked before fault() is asked.
class BlockList {
 public:
  // Even blocks, which need no list.
  BlockList() = default;
  explicit BlockList(const Blocks& blocks);

  bool uneven() const { return uneven_; }
  std::size_t size() const { return counts_.size(); }
  // Elements.
  std::size_t count(Rank rank) const { return counts_[rank]; }
  std::size_t offset(Rank rank) const { return offsets_[rank]; }
  // Of all blocks together.
  std::size_t total() const;
  std::size_t longest() const;
  // Tells lists of different lengths apart, whatever their places. Neither 0 nor
  // wire::kUnevenPairs.
  std::uint32_t digest() const;

  // Why these are not blocks of so many ranks in a buffer of so many elements; null: they are.
  const char* fault(std::size_t ranks, std::size_t elements) const;
  // Whether an element belongs to two blocks. Of a list without fault.
  bool overlaps() const;

 private:
  bool uneven_ = false;
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> offsets_;
};

}  // namespace leeway::collective
