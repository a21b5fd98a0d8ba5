// What this rank contributes to every shard of a reduction: the caller's tensor, plus the residual
// of earlier calls, times a factor. Forms the packets and parity for the shards' owners, and keeps
// what encoding loses as the next residual.
#pragma once

#include <vector>

#include "base/growing_buffer.h"
#include "collective/operation_plan.h"
#include "collective/parity_cache.h"
#include "protocol/round_client.h"

namespace leeway::collective {

class OwnContribution {
 public:
  explicit OwnContribution(MemoryWatcher* watcher) : copied_input_(watcher), kept_(watcher) {}

  // The plan must outlive the operation.
  void begin(const OperationPlan& plan);

  // See the functions of the same names in protocol::RoundClient.
  protocol::Payload payload(Rank owner, PacketIndex index, PacketIndex ahead,
                            MutableByteSpan scratch);
  protocol::Payload parity(Rank owner, wire::ParityPlace place, MutableByteSpan scratch);

  // Returns a packet of our own shard, which is not encoded. Valid until the next call.
  ByteSpan to_self(PacketIndex index);
  // As to_self(). The values are copied if the result overwrites them and the sum may have to be
  // formed again, without contributions that are not finite.
  ByteSpan kept_to_self(PacketIndex index);
  // Adds a packet of our own shard to the noise measurement.
  void measure(PacketIndex index);

 private:
  const ReductionPlan& half() const { return plan_->reduction; }
  bool coded() const { return plan_->round.phase(protocol::FlowKind::reduce).coded; }
  void take_input();
  void prepare_parity();
  bool pays_residual(Rank owner) const;
  void add_residual(Rank owner);
  void keep_residual(std::span<const float> values, const codec::Place& place, ByteSpan encoded);
  // Returns a packet of the owner's shard as it lies at `input_`.
  ByteSpan input_to(Rank owner, const schedule::PacketGrid& grid, PacketIndex index) const;
  // Returns our contribution to that packet. If a factor is still to be applied, the products are
  // written to `memory`.
  ByteSpan contribution_to(Rank owner, const schedule::PacketGrid& grid, PacketIndex index,
                           std::byte* memory) const;
  // Returns the place where our encoded packet is kept, because parity is computed from it later.
  MutableByteSpan kept_place(Rank owner, const schedule::PacketGrid& grid, PacketIndex index);

  const OperationPlan* plan_ = nullptr;  // plan of the current operation
  const std::byte* input_ = nullptr;     // the whole tensor, the caller's or our copy
  schedule::PacketGrid own_grid_;        // cuts our own shard into packets
  std::size_t element_bytes_ = 4;
  GrowingBuffer copied_input_;  // copy of the input, plus the residual if there is one
  bool multiplies_ = false;     // a factor is still to be applied to the values at `input_`
  // One packet of our own shard, if a factor is applied or the result overwrites the input.
  GrowingBuffer packet_;
  // The following are used only in a coded phase.
  GrowingBuffer kept_;                  // our encoded contributions
  std::vector<std::size_t> kept_from_;  // by owner: offset of the first packet
  std::vector<ParityCache> parities_;   // by owner
};

}  // namespace leeway::collective
