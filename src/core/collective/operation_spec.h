// A caller's request in one value, and the checks that come before anything is sent.
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

// Packets of a replica_broadcast that must arrive, and that did. By owner rank, one bit for each
// packet.
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
  // Set to false only in the simulator: tensors have a size and no memory, and payloads a length
  // and no values. Nothing is staged, summed or encoded. All datagrams and their times are the
  // same.
  bool contents = true;
  // Uneven blocks of the input (reduce_scatter, all_to_all) and of the output (all_gather,
  // all_to_all).
  BlockList input_blocks{};
  BlockList output_blocks{};
  bool grouped = false;  // a message of an exchange
  // A hop of a lossy call between sites: data that a silent rank does not send is missing, and does
  // not make the hop fail.
  bool lenient = false;
  // If set, the operation takes its number, and fails with this status before any data is sent.
  std::shared_ptr<const Status> forfeit{};
  // It only holds its place among the collectives of a channel, and is open until Engine::end().
  // The call itself goes another way, or takes the place later (Engine::submit()).
  bool stands_in = false;
  // How the whole call goes (wire::OperationTag::parts). This operation is a part of that call, or
  // stands in for it.
  std::uint8_t parts = 0;
  // The call that a hop is a part of. Texts name this call.
  struct Whole {
    OperationKind kind;
    std::uint32_t number;
    Duration deadline;
  };
  std::optional<Whole> whole{};
  // Messages of an exchange.
  std::shared_ptr<const std::vector<leeway::Message>> messages{};

  // Returns true if a source and a sink of the caller encode and decode its elements.
  bool elsewhere() const { return options.source != nullptr; }
  bool uneven() const { return input_blocks.uneven() || output_blocks.uneven(); }
};

bool point_to_point(OperationKind kind);  // a message: send or recv
// Returns true if all ranks call it, in the same order. Each rank makes its own number of messages
// and groups of them, so these must not count in the numbering of collectives.
bool is_collective(OperationKind kind);
bool has_reduce_half(OperationKind kind);
bool has_spread_half(OperationKind kind);
// Returns true for a collective in which this rank has no elements. If all ranks call alike, none
// has any.
bool is_empty(const OperationSpec& spec);
bool is_sum(ReduceOp op);  // sum, avg and premul_sum: what codecs and lossy classes are defined for
// Returns true if the codec of either half is automatic.
bool has_automatic_codec(const CollectiveOptions& options);

// Address of element number `element` of a tensor of this type.
inline std::byte* element_at(const void* data, std::size_t element, DataType type) {
  return static_cast<std::byte*>(const_cast<void*>(data)) + element * size_of(type);
}

// Element type of the tensors.
DataType dtype_of(const OperationSpec& spec);
// Returns the number of elements that ranks compare to find out whether they call the same
// operation: those of a contribution or of the result, whichever is the same everywhere.
std::size_t agreed_count(const OperationSpec& spec);

// Returns kInvalidArgument or kUnsupported with the argument's name and value; ok otherwise.
Status validate(const OperationSpec& spec, Rank self, int size);

}  // namespace leeway::collective
