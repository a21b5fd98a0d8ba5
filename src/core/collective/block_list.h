// Places of blocks of different lengths in one of the caller's buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/shapes.h"
#include "leeway/types.h"

namespace leeway::collective {

// Copy of the caller's Blocks. It is not checked before fault() is called.
class BlockList {
 public:
  // Makes an empty list, which stands for blocks of equal length.
  BlockList() = default;
  explicit BlockList(const Blocks& blocks);

  bool uneven() const { return uneven_; }
  std::size_t size() const { return counts_.size(); }
  // Returns the number of elements in the rank's block.
  std::size_t count(Rank rank) const { return counts_[rank]; }
  std::size_t offset(Rank rank) const { return offsets_[rank]; }
  // Elements of all blocks together.
  std::size_t total() const;
  std::size_t longest() const;
  // Digest of the blocks' lengths, whatever their places. Never 0 or wire::kUnevenPairs, which have
  // another meaning in an operation's tag.
  std::uint32_t digest() const;

  // Checks that there is one block for each of `ranks` ranks, and that the blocks lie in a buffer
  // of `elements` elements. Returns a text that says what is wrong, or null if nothing is.
  const char* fault(std::size_t ranks, std::size_t elements) const;
  // Returns true if an element belongs to two blocks. The list must have no fault.
  bool overlaps() const;

 private:
  bool uneven_ = false;
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> offsets_;
};

}  // namespace leeway::collective
