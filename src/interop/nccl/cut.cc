// How operations are cut into parts.
#include <algorithm>

#include "interop/nccl/staged.h"

namespace leeway::nccl {
namespace {

// A part is an eighth of the tensor, within these bounds, so that copies and network overlap.
constexpr std::size_t kPartMin = std::size_t{256} << 10;
constexpr std::size_t kPartMax = std::size_t{4} << 20;
constexpr std::size_t kParts = 8;
// Least bytes of each rank's block in a part. Smaller copies cost more time than overlap saves.
constexpr std::size_t kBlockMin = std::size_t{32} << 10;
constexpr std::size_t kMultiple = 4096;
// Length of a message's parts. It depends on nothing else of a call, because the peer may send or
// receive the message in a group with other messages.
constexpr std::size_t kMessagePart = kPartMax;

std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kBoundary = 64;
  return (bytes + kBoundary - 1) / kBoundary * kBoundary;
}

bool has_blocks(Kind kind) {
  return kind == Kind::reduce_scatter || kind == Kind::all_gather || kind == Kind::all_to_all ||
         kind == Kind::gather || kind == Kind::scatter;
}

// Number of elements that a part has of each block.
std::size_t part_elements(const Operation& operation, int size) {
  const std::size_t element = size_of(operation.type);
  if (is_message(operation.kind)) return kMessagePart / element;
  const std::size_t blocks = has_blocks(operation.kind) ? static_cast<std::size_t>(size) : 1;
  const std::size_t whole = operation.count * element * blocks;
  const std::size_t part = std::clamp(whole / kParts, kPartMin, kPartMax);
  const std::size_t block = std::max(part / blocks, kBlockMin);
  return (block + kMultiple - 1) / kMultiple * kMultiple / element;
}

// Where a part's blocks lie in memory and in staging. Each row is one block. In staging, input and
// output share blocks, except in an all_to_all, which cannot work in place.
struct Layout {
  std::size_t input_rows = 1;
  std::size_t output_rows = 1;
  std::size_t input_at = 0;  // in blocks
  std::size_t output_at = 0;
  std::size_t blocks = 1;
};

Layout layout_of(const Operation& operation, int rank, int size) {
  const auto all = static_cast<std::size_t>(size);
  const auto own = static_cast<std::size_t>(rank);
  const bool root = own == operation.peer;
  switch (operation.kind) {
    case Kind::reduce_scatter:
      return {all, 1, 0, own, all};
    case Kind::all_gather:
      return {1, all, own, 0, all};
    case Kind::all_to_all:
      return {all, all, 0, all, 2 * all};
    case Kind::gather:
      return root ? Layout{1, all, own, 0, all} : Layout{};
    case Kind::scatter:
      return root ? Layout{all, 1, 0, own, all} : Layout{};
    default:
      return {};
  }
}

device::cuda::Address address_of(const void* memory, std::size_t offset) {
  return reinterpret_cast<device::cuda::Address>(memory) + offset;
}

StagedPart part_of(const Operation& operation, const Layout& layout, std::size_t first,
                   std::size_t count) {
  const std::size_t element = size_of(operation.type);
  const std::size_t bytes = count * element;
  const std::size_t pitch = operation.count * element;
  StagedPart part;
  StagedPart::Piece piece{operation, StagedPart::kNone, StagedPart::kNone};
  piece.operation.count = count;
  if (operation.send != nullptr) {
    piece.input_at = layout.input_at * bytes;
    part.copies.input.push_back({address_of(operation.send, first * element), piece.input_at, bytes,
                                 layout.input_rows, pitch});
  }
  if (operation.receive != nullptr) {
    piece.output_at = layout.output_at * bytes;
    // A root that broadcasts in place has the result already.
    const bool there = operation.kind == Kind::broadcast && operation.send == operation.receive;
    if (!there)
      part.copies.output.push_back({address_of(operation.receive, first * element), piece.output_at,
                                    bytes, layout.output_rows, pitch});
  }
  part.copies.staging_bytes = layout.blocks * bytes;
  part.pieces.push_back(piece);
  return part;
}

void add_factor(const Operation& operation, StagedPart& part) {
  part.factor_at = aligned(part.copies.staging_bytes);
  const std::size_t bytes = size_of(operation.type);
  part.copies.input.push_back({address_of(operation.factor, 0), part.factor_at, bytes});
  part.copies.staging_bytes = part.factor_at + bytes;
}

}  // namespace

std::vector<StagedPart> cut(const Operation& operation, int rank, int size) {
  const Layout layout = layout_of(operation, rank, size);
  const std::size_t step = part_elements(operation, size);
  std::vector<StagedPart> parts;
  std::size_t first = 0;
  do {  // a message of length 0 has a part, too
    const std::size_t count = std::min(step, operation.count - first);
    parts.push_back(part_of(operation, layout, first, count));
    first += count;
  } while (first < operation.count);
  if (operation.factor != nullptr) add_factor(operation, parts.front());
  return parts;
}

StagedPart cut_messages(std::span<const Operation> messages) {
  StagedPart all;
  for (const Operation& message : messages) {
    for (StagedPart& part : cut(message, 0, 1)) {
      const std::size_t at = aligned(all.copies.staging_bytes);
      all.copies.staging_bytes = at + part.copies.staging_bytes;
      StagedPart::Piece& piece = part.pieces.front();
      for (device::Copy& one : part.copies.input) all.copies.input.push_back(one);
      for (device::Copy& one : part.copies.output) all.copies.output.push_back(one);
      if (piece.input_at != StagedPart::kNone) all.copies.input.back().offset = piece.input_at = at;
      if (piece.output_at != StagedPart::kNone)
        all.copies.output.back().offset = piece.output_at = at;
      all.pieces.push_back(piece);
    }
  }
  return all;
}

}  // namespace leeway::nccl
