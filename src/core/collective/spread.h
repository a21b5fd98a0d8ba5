// Spread half: sends blocks from the ranks that have them to the ranks that want them, and writes
// them to their final place. Also carries every collective that only moves data (gather, scatter,
// all_to_all, send, ...).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bitmap.h"
#include "base/growing_buffer.h"
#include "codec/codec.h"
#include "collective/noise_meter.h"
#include "collective/operation_plan.h"
#include "collective/packet_recovery.h"
#include "collective/parity_cache.h"
#include "protocol/round.h"
#include "schedule/packet_cursor.h"
#include "schedule/packet_grid.h"

namespace leeway::collective {

class Spread {
 public:
  explicit Spread(MemoryWatcher* watcher) : buffer_(watcher) {}

  // Begins an operation. Encodes our block at once unless streaming. The plan must outlive the
  // operation.
  void begin(const OperationPlan& plan);

  schedule::PacketGrid outgoing(Rank peer) const { return grid_of(half().send[peer].elements); }
  schedule::PacketGrid incoming(Rank peer) const { return grid_of(half().receive[peer].elements); }

  // Streaming: call it when the reduction has finished the chunks `reduced`, which are chunks of
  // `reduced_grid`. Makes available the chunks of our block that are complete now.
  void on_reduced(const schedule::PacketGrid& reduced_grid, const schedule::ChunkQueue& reduced);
  // Streaming: chunks of our block that are complete, in the order in which they became so.
  const schedule::ChunkQueue& available() const { return available_; }
  schedule::ChunkQueue& available() { return available_; }

  protocol::Payload payload(Rank to, PacketIndex index, MutableByteSpan scratch);
  bool accept(Rank from, PacketIndex index, ByteSpan payload);

  // See protocol::RoundClient.
  protocol::Payload parity(Rank to, wire::ParityPlace place, MutableByteSpan scratch);
  bool hold_parity(Rank from, PacketIndex index, ByteSpan payload);
  ByteSpan lift_parity(Rank from, PacketIndex index);
  bool recover(Rank from, const protocol::RoundClient::CodedPackets& code);

  // Returns the number of elements of `flows` that did not arrive.
  std::uint64_t missing_elements(std::span<const protocol::ReceiveFlow> flows) const;
  // Sets the elements that did not arrive to 0. If the owner of a shard fell silent, no gradient
  // came, so none must be applied.
  void clear_missing(std::span<const protocol::ReceiveFlow> flows);

 private:
  const SpreadPlan& half() const { return plan_->spread; }
  schedule::PacketGrid grid_of(std::size_t elements) const {
    const schedule::PacketGrid grid = plan_->grid_of(elements, half().format);
    return half().tells_empty ? grid.with_empty_packet() : grid;
  }
  // Returns where the packet's elements of the block lie in the caller's memory.
  MutableByteSpan elements_at(const Block& block, const schedule::PacketGrid& grid,
                              PacketIndex index) const {
    return {block.data + grid.packet_offset(index) * element_bytes_,
            grid.packet_elements(index) * element_bytes_};
  }
  // Calls visit(peer, grid, index) for each packet of `flows` that did not come.
  template <typename Visit>
  void for_each_missing(std::span<const protocol::ReceiveFlow> flows, const Visit& visit) const;
  std::uint32_t sum(ByteSpan bytes) const;
  void sum_chunk(ChunkIndex chunk);
  protocol::Payload own_payload(PacketIndex index);
  void encode_range(std::size_t first, std::size_t elements);
  void encode_packet(PacketIndex index, MutableByteSpan elements, MutableByteSpan out);
  void prepare_code();
  MutableByteSpan place_of(Rank from, PacketIndex index);
  void decode(Rank from, const schedule::PacketGrid& grid, PacketIndex index, ByteSpan payload);
  std::size_t encoded_offset(PacketIndex index) const { return index.value * packet_bytes_; }

  const OperationPlan* plan_ = nullptr;  // plan of the current operation
  std::size_t element_bytes_ = 4;
  std::size_t packet_bytes_ = 0;  // of a full packet, encoded
  Block own_;                     // same_block: the block that we send to all
  schedule::PacketGrid own_grid_;
  GrowingBuffer buffer_;            // encoded (or copied) own block, packet by packet
  std::vector<std::uint32_t> crc_;  // checksums of own packets, where crc_known_ is set
  Bitmap crc_known_;
  schedule::ChunkQueue available_;
  std::uint32_t reduced_taken_ = 0;  // entries of the reduction's queue that were handled
  // By chunk of our block: number of reduction chunks that are not finished and overlap it.
  std::vector<std::uint32_t> chunk_waits_;
  // Only in a coded phase. Packets are kept encoded, since parity was computed from encoded
  // packets.
  GrowingBuffer kept_;
  std::vector<std::size_t> kept_from_;  // by sender: offset of its first packet
  ParityCache parity_;                  // parity of our block, if all receivers get the same
  PacketRecovery recovery_;
};

}  // namespace leeway::collective
