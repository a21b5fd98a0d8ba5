#include "endpoint/ring_plan.h"

#include <algorithm>

namespace leeway::sim {

namespace {

// Limits of Gloo's ring. A chunk has at least two slices, so that one slice is sent while the next
// one arrives. A slice has at most 1 MiB.
constexpr std::uint64_t kSlicesPerChunkMin = 2;
constexpr std::uint64_t kSliceBytesMax = std::uint64_t{1} << 20;
constexpr std::uint64_t kElementBytes = 4;

std::uint64_t part_begin(std::uint64_t count, std::uint64_t parts, std::uint64_t part) {
  return count / parts * part + std::min(part, count % parts);
}

std::uint64_t part_size(std::uint64_t count, std::uint64_t parts, std::uint64_t part) {
  return part_begin(count, parts, part + 1) - part_begin(count, parts, part);
}

}  // namespace

std::optional<RingPlan> RingPlan::make(CallKind kind, std::uint64_t bytes, std::uint32_t rank,
                                       std::uint32_t ranks) {
  RingPlan plan;
  plan.rank_ = rank;
  plan.ranks_ = ranks;
  plan.elements_ = bytes / kElementBytes;
  plan.chunks_ = kind == CallKind::broadcast ? 1 : ranks;
  const std::uint64_t chunk_bytes = (bytes + plan.chunks_ - 1) / plan.chunks_;
  plan.slices_per_chunk_ =
      std::max(kSlicesPerChunkMin, (chunk_bytes + kSliceBytesMax - 1) / kSliceBytesMax);
  const std::uint64_t round_of_ring = (ranks - 1) * plan.slices_per_chunk_;
  switch (kind) {
    case CallKind::all_reduce:
    case CallKind::reduce_scatter:
    case CallKind::all_gather:
      plan.slices_out_ = (kind == CallKind::all_reduce ? 2 : 1) * round_of_ring;
      plan.slices_in_ = plan.slices_out_;
      plan.own_slices_ = plan.slices_per_chunk_;
      plan.reduces_ = kind != CallKind::all_gather;
      return plan;
    case CallKind::broadcast:
      plan.slices_out_ = rank + 1 < ranks ? plan.slices_per_chunk_ : 0;
      plan.slices_in_ = rank > 0 ? plan.slices_per_chunk_ : 0;
      plan.own_slices_ = rank > 0 ? 0 : plan.slices_per_chunk_;
      return plan;
    default:
      break;
  }
  return std::nullopt;
}

std::uint64_t RingPlan::ready(std::uint64_t received) const {
  return std::min(own_slices_ + received, slices_out_);
}

std::uint64_t RingPlan::total_bytes_in() const {
  std::uint64_t bytes = 0;
  for (std::uint64_t slice = 0; slice < slices_in_; ++slice) bytes += bytes_in(slice);
  return bytes;
}

std::uint64_t RingPlan::slice_bytes(std::uint32_t first_chunk, std::uint64_t slice) const {
  const std::uint64_t step = slice / slices_per_chunk_;
  const std::uint64_t chunk = (first_chunk + 2 * chunks_ - step) % chunks_;
  const std::uint64_t elements = part_size(elements_, chunks_, chunk);
  return kElementBytes * part_size(elements, slices_per_chunk_, slice % slices_per_chunk_);
}

}  // namespace leeway::sim
