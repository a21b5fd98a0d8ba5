// The facts about a call that are the same on all ranks, because they follow from the call alone:
// whether it goes through the arena, and how it is cut into chunks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective/operation_spec.h"

namespace leeway::near {

// Returns true if all ranks send this call through their arena. The result depends only on
// arguments that all ranks of a correct program give alike.
bool takes(const collective::OperationSpec& spec);

// Returns true if this rank gives the call something that only datagrams carry: weights, error
// feedback, or confirm_use. Other ranks cannot know that from their own arguments, so this rank
// tells them.
bool stands_apart(const collective::OperationSpec& spec);

// Elements [at, at + count).
struct Part {
  std::size_t at = 0;
  std::size_t count = 0;
};

struct Plan {
  collective::OperationKind kind = collective::OperationKind::barrier;
  ReduceOp op = ReduceOp::sum;
  DataType dtype = DataType::u8;
  Rank root = kNoRank;
  int ranks = 1;
  std::size_t count = 0;    // collective::agreed_count()
  std::size_t element = 1;  // bytes

  // Each rank's input is `pieces` blocks (at least 1) of `length` elements. All blocks are cut at
  // the same places. A chunk is one piece of each block.
  std::size_t pieces = 1;
  std::size_t length = 0;
  std::size_t chunk = 0;  // elements of a piece in all chunks but the last
  std::uint64_t chunks = 1;
  // If true, each rank sums its own part of a chunk, and the others copy that sum. Otherwise every
  // rank computes all sums that it needs.
  bool owners = false;
  // If true, the call needs no slots, provided that all tensors lie in memory that all ranks map.
  bool direct = false;

  // Returns the word by which ranks compare their calls.
  std::uint64_t what() const;
  Part piece(std::uint64_t index) const;
  // Returns the distance in bytes from one piece of a chunk to the next one, in a slot.
  std::size_t stride() const { return chunk * element; }
  // Returns the part that the rank sums of a chunk of `elements` elements.
  Part owned(Rank rank, std::size_t elements) const;
  // Returns the plan of the same call without slots, with a chunk length that suits caches.
  Plan unslotted() const;
};

Plan plan_of(const collective::OperationSpec& spec, int ranks, std::size_t slot_bytes);

}  // namespace leeway::near
