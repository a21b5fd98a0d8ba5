// Tells the receiver which packets of a first pass must have left by now, chunk by chunk.
//
// Inside a chunk, packets leave in an order that the receiver can compute (schedule::ChunkOrder).
// So the receiver can ask for lost packets before the first pass ends (WIRE 5.9), and a long flow
// is repaired during its first pass.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bitmap.h"
#include "base/packet_index.h"
#include "base/time.h"
#include "schedule/packet_cursor.h"
#include "schedule/packet_grid.h"

namespace leeway::protocol {

class ChunkWatch {
 public:
  // on_packet() returns about this many packets at a time, all of one 64-bit word of the arrival
  // bitmap. With a request for each lost packet, requests would take more datagrams than early
  // repair saves.
  static constexpr std::uint32_t kStep = 16;
  // A missing packet is asked for once this many later packets have left, or twice the largest
  // number of packets that overtook one packet so far, if that is more. If the number reaches
  // Bitmap::kWordBits (64), nothing is asked for, because a missing packet may only be overtaken.
  static constexpr std::uint32_t kOvertaken = 16;

  struct Left {
    std::uint32_t word = 0;
    std::uint64_t packets = 0;  // one bit for each packet

    friend bool operator==(const Left&, const Left&) = default;
  };

  ChunkWatch() = default;
  // `grid` is the sender's, and `key` the key of its order inside chunks
  // (PacketCursor::Keys::inner).
  ChunkWatch(const schedule::PacketGrid& grid, std::uint64_t key) : grid_(grid), key_(key) {}

  // Takes in a packet of the first pass. Returns packets that have left and should have come by
  // now, each packet once. Ignores eager packets: they leave before the ready gate opens, so they
  // say nothing about the pace. Forged positions and indices change only which packets are asked
  // for.
  std::optional<Left> on_packet(Instant now, PacketIndex index, PacketPosition position);

  // Returns how long the rest of the first pass will take at the pace of the packets so far.
  Duration rest(Instant now) const;

 private:
  struct Pending {
    Left left;
    std::uint32_t at = 0;  // position that the pass had reached
  };

  void follow(PacketIndex index, std::uint32_t position);
  void enter(ChunkIndex chunk, std::uint32_t packet, std::uint32_t position);
  void leave_behind(std::uint32_t end, std::uint32_t position);
  void remember(const Left& left, std::uint32_t position);

  schedule::PacketGrid grid_;
  std::uint64_t key_ = schedule::PacketCursor::kInOrder;
  Instant began_{0};
  std::uint32_t first_ = 0;         // position of the first packet, not counting eager ones
  std::uint32_t newest_ = 0;        // position of the newest packet
  std::uint32_t overtaken_by_ = 0;  // largest number of packets that overtook one packet
  // Chunk of the newest packet, and that packet's place in it. order_ is empty until a packet came.
  ChunkIndex chunk_;
  schedule::ChunkOrder order_;
  std::uint32_t place_ = 0;
  std::uint32_t told_ = 0;  // places before this one are pending or were returned
  // Packets that have left and are not returned yet, oldest first. If the array is full, the oldest
  // entry is dropped, and parity makes up for those packets.
  std::array<Pending, 8> pending_;
  std::uint32_t pending_count_ = 0;
};

}  // namespace leeway::protocol
