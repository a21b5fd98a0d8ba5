// What of a first pass its receiver knows to have left, chunk by chunk.
//
// A first pass goes chunk by chunk, in an order that the receiver can tell (schedule::ChunkOrder).
// So its receiver need not wait for the end of it to ask for what was lost (WIRE 5.9): a long flow
// is repaired meanwhile.
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
  // About so many packets are told at a time, of one word of the ledger: a request for each would
  // take more datagrams than it saves.
  static constexpr std::uint32_t kStep = 16;
  // A packet is taken for lost when so many later ones have left, and twice as many as any packet
  // was overtaken by. Where that is a word or more, nothing is: what is missing may still come.
  static constexpr std::uint32_t kOvertaken = 16;

  struct Left {
    std::uint32_t word = 0;
    std::uint64_t packets = 0;  // a bit each

    friend bool operator==(const Left&, const Left&) = default;
  };

  ChunkWatch() = default;
  // The sender's grid and PacketCursor::Keys::inner.
  ChunkWatch(const schedule::PacketGrid& grid, std::uint64_t key) : grid_(grid), key_(key) {}

  // A packet of the first pass came. Says what should have come by now, each packet once. Eager
  // packets do not wait for the gate, so they tell nothing of the pace. False positions and indices
  // change only what is asked for.
  std::optional<Left> on_packet(Instant now, PacketIndex index, PacketPosition position);

  // How long the rest of the first pass takes, at the pace that it had.
  Duration rest(Instant now) const;

 private:
  struct Pending {
    Left left;
    std::uint32_t at = 0;  // the pass had come so far
  };

  void follow(PacketIndex index, std::uint32_t position);
  void enter(ChunkIndex chunk, std::uint32_t packet, std::uint32_t position);
  void leave_behind(std::uint32_t end, std::uint32_t position);
  void remember(const Left& left, std::uint32_t position);

  schedule::PacketGrid grid_;
  std::uint64_t key_ = schedule::PacketCursor::kInOrder;
  Instant began_{0};
  std::uint32_t first_ = 0;         // position of what came first, but for eager packets
  std::uint32_t newest_ = 0;        // of the newest
  std::uint32_t overtaken_by_ = 0;  // the most packets that one came behind
  // The chunk of the newest packet, and its place in there; of no packets: none came.
  ChunkIndex chunk_;
  schedule::ChunkOrder order_;
  std::uint32_t place_ = 0;
  std::uint32_t told_ = 0;  // places before this one are pending, or were told
  // In order. More are pending only where chunks of a few packets leave in no order of words; the
  // oldest is then left to parity.
  std::array<Pending, 8> pending_;
  std::uint32_t pending_count_ = 0;
};

}  // namespace leeway::protocol
