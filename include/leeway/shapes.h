// Blocks of different lengths, for collectives that divide a buffer unequally.
#pragma once

#include <cstddef>
#include <span>

namespace leeway {
inline namespace v0 {

// Blocks of different lengths in one buffer: one for each rank of the communicator, in rank order.
// A block may be empty. The values are copied at the call.
struct Blocks {
  std::span<const std::size_t> counts;  // elements of each block
  // Offset of each block, in elements from the start of the buffer. If empty, blocks are adjacent,
  // in rank order. Blocks that are written must not overlap, and neither must the input blocks of
  // reduce_scatter().
  std::span<const std::size_t> displacements;

  // The constructor keeps Blocks from being an aggregate, so that empty braces in a call always
  // mean default options.
  explicit Blocks(std::span<const std::size_t> counts_in,
                  std::span<const std::size_t> displacements_in = {})
      : counts(counts_in), displacements(displacements_in) {}
};

}  // namespace v0
}  // namespace leeway
