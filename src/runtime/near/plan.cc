#include "near/plan.h"

#include <algorithm>

namespace leeway::near {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

// Parts of ranks are whole cache lines, so no two ranks write the same line.
constexpr std::size_t kGrainBytes = 64;

// If all inputs together have at most this many bytes, every rank sums the whole of an all_reduce.
// If they have more, each rank sums only its part, and a second wait is needed before the others
// fetch the sum.
constexpr std::size_t kSummedByAllBytes = std::size_t{32} << 10;

// Bytes of each rank's tensor in a chunk of a direct call.
constexpr std::size_t kDirectChunkBytes = std::size_t{1} << 20;

bool is_plain(const CodecOptions& codec, DataType dtype) {
  const bool same_bits =
      codec.codec == Codec::native || (codec.codec == Codec::fp32 && dtype == DataType::f32);
  return same_bits && !codec.rotate;
}

bool has_blocks(OperationKind kind) {
  return kind == OperationKind::reduce_scatter || kind == OperationKind::scatter ||
         kind == OperationKind::all_to_all;
}

std::size_t length_of(const OperationSpec& spec, int ranks) {
  switch (spec.kind) {
    case OperationKind::reduce_scatter:
    case OperationKind::scatter:
      return spec.output.count;
    case OperationKind::all_to_all:
      return spec.input.count / static_cast<std::size_t>(ranks);
    default:
      return spec.input.count;
  }
}

std::size_t grain(std::size_t element) {
  return kGrainBytes / element;
}

}  // namespace

bool takes(const OperationSpec& spec) {
  switch (spec.kind) {
    case OperationKind::all_reduce:
    case OperationKind::reduce_scatter:
    case OperationKind::all_gather:
    case OperationKind::broadcast:
    case OperationKind::reduce:
    case OperationKind::gather:
    case OperationKind::scatter:
    case OperationKind::all_to_all:
    case OperationKind::barrier:
    case OperationKind::split:
      break;
    default:
      return false;
  }
  const CollectiveOptions& options = spec.options;
  const DataType dtype = collective::dtype_of(spec);
  return options.delivery.kind == Delivery::Kind::exact && !spec.uneven() && !spec.elsewhere() &&
         spec.contents && !spec.lenient && spec.forfeit == nullptr &&
         is_plain(options.codec, dtype) &&
         (spec.kind != OperationKind::all_reduce ||
          is_plain(options.spread_codec.value_or(options.codec), dtype));
}

bool stands_apart(const OperationSpec& spec) {
  const CollectiveOptions& options = spec.options;
  return options.weight != 1.0 || !options.owner_weights.empty() || !options.residual.empty() ||
         options.confirm_use;
}

Plan plan_of(const OperationSpec& spec, int ranks, std::size_t slot_bytes) {
  Plan plan;
  plan.kind = spec.kind;
  if (collective::has_reduce_half(spec.kind)) plan.op = spec.options.op;
  plan.dtype = collective::dtype_of(spec);
  plan.root = spec.peer;
  plan.ranks = ranks;
  plan.count = collective::agreed_count(spec);
  plan.element = size_of(plan.dtype);
  plan.pieces = has_blocks(spec.kind) ? static_cast<std::size_t>(ranks) : 1;
  plan.length = length_of(spec, ranks);
  const std::size_t most = slot_bytes / plan.pieces / kGrainBytes * grain(plan.element);
  plan.chunk = std::max<std::size_t>(1, std::min(plan.length, most));
  plan.chunks = std::max<std::uint64_t>(1, (plan.length + plan.chunk - 1) / plan.chunk);
  const std::size_t bytes = plan.length * plan.element;
  const bool small =
      plan.chunks == 1 && bytes * static_cast<std::size_t>(ranks) <= kSummedByAllBytes;
  plan.owners = spec.kind == OperationKind::all_reduce && !small;
  plan.direct = plan.owners;
  return plan;
}

std::uint64_t Plan::what() const {
  return static_cast<std::uint64_t>(kind) << 48 | static_cast<std::uint64_t>(op) << 40 |
         static_cast<std::uint64_t>(dtype) << 32 | root;
}

Part Plan::piece(std::uint64_t index) const {
  const std::size_t at = index * chunk;
  return {at, std::min(chunk, length - std::min(length, at))};
}

Part Plan::owned(Rank rank, std::size_t elements) const {
  const std::size_t lines = (elements + grain(element) - 1) / grain(element);
  const auto n = static_cast<std::size_t>(ranks);
  const auto begin = [&](std::size_t r) {
    return std::min(elements, lines * r / n * grain(element));
  };
  return {begin(rank), begin(rank + 1u) - begin(rank)};
}

Plan Plan::unslotted() const {
  Plan plan = *this;
  plan.chunk = std::min(length, kDirectChunkBytes / element);
  plan.chunks = (length + plan.chunk - 1) / plan.chunk;
  return plan;
}

}  // namespace leeway::near
