// A caller's request in one value, and the checks before anything is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bitmap.h"
#include "collective/block_list.h"
#include "leeway/message.h"
#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"
#include "wire/operation_kind.h"

namespace leeway::collective {

using wire::OperationKind;

// Packets of a replica_broadcast that must arrive, and those that did: one bitmap for each owner
// rank, with one bit for each packet.
struct BroadcastLedger {
  std::vector<Bitmap> required;
  std::vector<Bitmap> arrived;
};

struct OperationSpec {
  OperationKind kind = OperationKind::barrier;
  ConstTensorView input{nullptr, 0, DataType::f32};
  TensorView output{nullptr, 0, DataType::f32};
  Rank peer = kNoRank;  // root, or the other side of send/recv
  CollectiveOptions options;
  BroadcastLedger* ledger = nullptr;  // replica_broadcast only; must outlive the operation
  // True if tensors have memory. The simulator may clear it: tensors then have only a size, and the
  // operation stages, sums and encodes nothing. Lengths and times of datagrams are the same.
  bool contents = true;
  // Uneven blocks of the input (reduce_scatter, all_to_all) and of the output (all_gather,
  // all_to_all).
  BlockList input_blocks{};
  BlockList output_blocks{};
  bool grouped = false;  // a message of an exchange
  // Set for a hop of a lossy call by sites. If a rank is silent, the hop does not fail; that rank's
  // data counts as missing.
  bool lenient = false;
  // If set, the operation only takes its number, and fails with this status before it sends data.
  std::shared_ptr<const Status> forfeit{};
  // Set for a stand-in: it holds its place among a channel's collectives until Engine::end(). The
  // call itself goes another way, or takes the place later (Engine::submit()).
  bool stands_in = false;
  // How the whole call is split (wire::OperationTag::parts). This operation is a part of that call,
  // or stands in for it.
  std::uint8_t parts = 0;
  // For a hop: the whole call, which error texts name.
  struct Whole {
    OperationKind kind;
    std::uint32_t number;
    Duration deadline;
  };
  std::optional<Whole> whole{};
  // For an exchange: its messages.
  std::shared_ptr<const std::vector<leeway::Message>> messages{};

  // Returns true if the caller's payload source and sink encode and decode the elements.
  bool elsewhere() const { return options.source != nullptr; }
  bool uneven() const { return input_blocks.uneven() || output_blocks.uneven(); }
};

bool point_to_point(OperationKind kind);  // a message: send or recv
// Returns true if all ranks must call operations of this kind in the same order. Messages and
// exchanges are no collectives: ranks make different numbers of them, so they are not numbered with
// collectives.
bool is_collective(OperationKind kind);
bool has_reduce_half(OperationKind kind);
bool has_spread_half(OperationKind kind);
// Returns true for a collective in which this rank has no elements. If calls agree, no rank has
// any.
bool is_empty(const OperationSpec& spec);
bool is_sum(ReduceOp op);  // sum, avg and premul_sum: what codecs and lossy classes are defined for
bool has_automatic_codec(const CollectiveOptions& options);

// Address of element number `element` of a tensor of this type.
inline std::byte* element_at(const void* data, std::size_t element, DataType type) {
  return static_cast<std::byte*>(const_cast<void*>(data)) + element * size_of(type);
}

// Element type of the tensors.
DataType dtype_of(const OperationSpec& spec);
// Returns the number of elements by which ranks compare their calls: of a contribution or of the
// result, whichever is the same on all ranks.
std::size_t agreed_count(const OperationSpec& spec);

// Checks the spec. Returns kInvalidArgument or kUnsupported, with the argument's name and value.
Status validate(const OperationSpec& spec, Rank self, int size);

}  // namespace leeway::collective
