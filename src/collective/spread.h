// The spread half: blocks of elements go from the one rank that has them to those that want them,
// straight to their place. Also carries every collective that only moves data (gather, scatter,
// all_to_all, send, ...).
#pragma once

#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "base/bitmap.h"
#include "codec/codec.h"
#include "collective/noise_meter.h"
#include "protocol/round.h"
#include "schedule/packet_cursor.h"
#include "schedule/packet_grid.h"

namespace leeway::collective {

struct Block {
  std::byte* data = nullptr;
  std::size_t elements = 0;
  std::size_t position = 0;  // in the tensor, for keyed draws; the same at sender and receivers
};

struct SpreadPlan {
  Rank self = 0;
  int size = 1;
  DataType dtype = DataType::f32;
  codec::Format format;
  std::size_t datagram_payload_bytes = 0;
  bool sum_payloads = true;  // as EndpointConfig
  bool contents = true;      // as OperationSpec
  std::uint64_t seed = 0;
  bool same_block = false;  // every receiver gets send[first receiver]: encode and checksum once
  bool streaming = false;   // the block becomes available chunk by chunk (a reduction fills it)
  // Our own block becomes decode(encode(block)), so that all ranks hold the same bits
  bool adopt = false;
  NoiseMeter* meter = nullptr;  // measures what encoding our block does to it; or null
  double meter_factor = 1.0;    // to values per unit of work
  bool copy_input = false;     // small block: keep a copy, so that the caller's memory is soon free
  std::vector<Block> send;     // by receiver; no elements: nothing
  std::vector<Block> receive;  // by sender
};

class Spread {
 public:
  explicit Spread(MemoryWatcher* watcher) : arena_(watcher) {}

  // Encodes at once unless streaming.
  void begin(SpreadPlan plan, std::uint32_t step);

  schedule::PacketGrid outgoing(Rank peer) const { return grid_of(plan_.send[peer].elements); }
  schedule::PacketGrid incoming(Rank peer) const { return grid_of(plan_.receive[peer].elements); }

  // Streaming: the reduction finished these of *its* chunks; pushes the chunks of ours that are now
  // whole.
  void on_reduced(const schedule::PacketGrid& reduced_grid, const schedule::ChunkQueue& reduced);
  // Payload lies in memory of ours, so that it outlives the caller's interest.
  bool retains_payload() const { return plan_.same_block && encoded(); }
  bool same_for_all() const { return plan_.same_block; }
  const schedule::ChunkQueue* queue() const { return plan_.streaming ? &available_ : nullptr; }

  protocol::Payload payload(Rank to, std::uint32_t index, MutableByteSpan scratch);
  bool accept(Rank from, std::uint32_t index, ByteSpan payload);

  // Elements of `flows` that no packet brought.
  std::uint64_t missing_elements(std::span<const protocol::ReceiveFlow> flows) const;
  // Zeroes them: no gradient came, so none is applied (an all_reduce whose owner fell silent).
  void clear_missing(std::span<const protocol::ReceiveFlow> flows);

 private:
  schedule::PacketGrid grid_of(std::size_t elements) const;
  bool encoded() const { return !plan_.format.identity() || plan_.copy_input; }
  std::uint32_t sum(ByteSpan bytes) const;
  void sum_chunk(std::uint32_t chunk);
  protocol::Payload own_payload(std::uint32_t index);
  void encode_range(std::size_t first, std::size_t elements);
  void encode_packet(std::uint32_t index, std::span<float> values, MutableByteSpan out);
  std::size_t encoded_offset(std::uint32_t index) const { return index * packet_bytes_; }

  SpreadPlan plan_;
  std::uint32_t step_ = 0;
  std::size_t element_bytes_ = 4;
  std::size_t packet_bytes_ = 0;
  Block own_;  // same_block: what we send to all
  schedule::PacketGrid own_grid_;
  Arena arena_;                     // encoded (or copied) own block, packet by packet
  std::vector<std::uint32_t> crc_;  // of own packets, where known
  Bitmap crc_known_;
  schedule::ChunkQueue available_;
  std::uint32_t reduced_taken_ = 0;         // entries of the reduction's queue that were looked at
  std::vector<std::uint32_t> chunk_waits_;  // reduction chunks each of our chunks still waits for
};

}  // namespace leeway::collective
