// What a rank does with a chunk: copies into its own slot and out of other ranks' slots, and sums.
#include <algorithm>
#include <cstring>

#include "codec/reduce.h"
#include "near/caller.h"

namespace leeway::near {
namespace {

using collective::OperationKind;

// Returns true if the reduction multiplies each float by a scale and sums the products.
// collective::Reduction does so, and results must have the same bits as there. An average of
// float64 is summed without scales and divided at the end.
bool sums_by_scales(ReduceOp op, DataType dtype) {
  return is_floating(dtype) &&
         (op == ReduceOp::sum || (op == ReduceOp::avg && dtype != DataType::f64));
}

}  // namespace

void Caller::copy(const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes == 0 || from == to) return;
  std::memcpy(to, from, bytes);
  counters_.bytes_copied.store(counters_.bytes_copied.load(std::memory_order_relaxed) + bytes,
                               std::memory_order_relaxed);
}

// Copies elements of this rank's input to `to`. Multiplies them by the call's factor, if there is
// one, so that other ranks can sum the copies as they are.
void Caller::put(const Spec& spec, Part part, std::byte* to) {
  const auto* from = static_cast<const std::byte*>(spec.input.data) + part.at * plan_.element;
  const std::size_t bytes = part.count * plan_.element;
  if (bytes == 0) return;
  if (multiplies_)
    return codec::multiply(plan_.dtype, spec.options.factor, {from, bytes}, {to, bytes});
  copy(from, to, bytes);
}

void Caller::copy_in(const Spec& spec, std::uint64_t chunk) {
  const Rank self = arena_.self();
  const Part piece = plan_.piece(chunk);
  std::byte* const slot = own_chunk(chunk);
  switch (plan_.kind) {
    case OperationKind::broadcast:
    case OperationKind::scatter:
      if (!is_root()) return;
      break;
    default:
      break;
  }
  for (std::size_t i = 0; i < plan_.pieces; ++i) {
    const Part from{i * plan_.length + piece.at, piece.count};
    std::byte* const to = slot + i * plan_.stride();
    if (!plan_.owners || multiplies_) {
      put(spec, from, to);
      continue;
    }
    // Leaves out the part that this rank sums, because no other rank reads it.
    const Part own = plan_.owned(self, piece.count);
    put(spec, {from.at, own.at}, to);
    const std::size_t behind = own.at + own.count;
    put(spec, {from.at + behind, piece.count - behind}, to + behind * plan_.element);
  }
}

const std::byte* Caller::own_input(const Spec& spec, std::uint64_t chunk, std::size_t piece) const {
  if (multiplies_) return own_chunk(chunk) + piece * plan_.stride();
  return static_cast<const std::byte*>(spec.input.data) +
         (piece * plan_.length + plan_.piece(chunk).at) * plan_.element;
}

void Caller::sum(const Spec& spec, std::uint64_t chunk, std::size_t from, std::size_t bytes,
                 std::byte* result) {
  if (bytes == 0) return;
  const std::size_t tensor_at = plan_.piece(chunk).at * plan_.element;
  const bool own_piece = plan_.pieces > 1;
  for (Rank rank = 0; rank < arena_.ranks(); ++rank) {
    if (rank == arena_.self()) {
      operands_[rank] = own_input(spec, chunk, own_piece ? rank : 0) + (own_piece ? 0 : from);
    } else {
      operands_[rank] =
          direct_ ? peers_[rank].input + tensor_at + from : chunk_of(rank, chunk) + from;
    }
  }
  const ReduceOp op = plan_.op == ReduceOp::premul_sum ? ReduceOp::sum : plan_.op;
  if (!sums_by_scales(op, plan_.dtype))
    return codec::reduce(op, plan_.dtype, operands_, {result, bytes});
  const auto share = static_cast<float>(1.0 / arena_.ranks());
  std::fill(scales_.begin(), scales_.end(), op == ReduceOp::avg ? double{share} : 1.0);
  codec::weighted_sum(plan_.dtype, operands_, scales_, {result, bytes});
}

// Writes this rank's results of a chunk to the output. For calls in which Plan::owners is false.
void Caller::take(const Spec& spec, std::uint64_t chunk) {
  const Rank self = arena_.self();
  const Part piece = plan_.piece(chunk);
  const std::size_t bytes = piece.count * plan_.element;
  auto* const output = static_cast<std::byte*>(spec.output.data);
  const auto at = [&](std::size_t block) {
    return output + (block * plan_.length + piece.at) * plan_.element;
  };
  const std::size_t own_piece = self * plan_.stride();
  switch (plan_.kind) {
    case OperationKind::all_reduce:
      return sum(spec, chunk, 0, bytes, at(0));
    case OperationKind::reduce:
      if (is_root()) sum(spec, chunk, 0, bytes, at(0));
      return;
    case OperationKind::reduce_scatter:
      return sum(spec, chunk, own_piece, bytes, at(0));
    case OperationKind::broadcast:
      if (!is_root()) copy(chunk_of(plan_.root, chunk), at(0), bytes);
      return;
    case OperationKind::scatter:
      return copy(
          is_root() ? own_input(spec, chunk, self) : chunk_of(plan_.root, chunk) + own_piece, at(0),
          bytes);
    case OperationKind::gather:
      if (!is_root()) return;
      [[fallthrough]];
    case OperationKind::all_gather:
    case OperationKind::split:
    case OperationKind::all_to_all: {
      const bool blocks = plan_.kind == OperationKind::all_to_all;
      for (Rank rank = 0; rank < arena_.ranks(); ++rank) {
        copy(rank == self ? own_input(spec, chunk, blocks ? self : 0)
                          : chunk_of(rank, chunk) + (blocks ? own_piece : 0),
             at(rank), bytes);
      }
      return;
    }
    default:
      return;  // a barrier has no elements
  }
}

// Sums this rank's part of a chunk into the output. If the call is not direct, also copies the sum
// to this rank's slot, in place of its input. The other ranks read the sum there.
void Caller::sum_owned(const Spec& spec, std::uint64_t chunk) {
  const Part piece = plan_.piece(chunk);
  const Part own = plan_.owned(arena_.self(), piece.count);
  const std::size_t from = own.at * plan_.element;
  const std::size_t bytes = own.count * plan_.element;
  auto* const result =
      static_cast<std::byte*>(spec.output.data) + (piece.at + own.at) * plan_.element;
  sum(spec, chunk, from, bytes, result);
  if (!direct_) copy(result, own_chunk(chunk) + from, bytes);
}

void Caller::gather_owned(const Spec& spec, std::uint64_t chunk) {
  const Part piece = plan_.piece(chunk);
  const auto ranks = static_cast<std::size_t>(arena_.ranks());
  for (std::size_t i = 1; i < ranks; ++i) {
    const auto rank = static_cast<Rank>((arena_.self() + i) % ranks);
    const Part part = plan_.owned(rank, piece.count);
    const std::size_t at = (piece.at + part.at) * plan_.element;
    const std::byte* const from =
        direct_ ? peers_[rank].result + at : chunk_of(rank, chunk) + part.at * plan_.element;
    copy(from, static_cast<std::byte*>(spec.output.data) + at, part.count * plan_.element);
  }
}

}  // namespace leeway::near
