// Receiver's record of the parity of one flow (WIRE 2.10).
//
// A useful parity is stored in the place of a missing packet, so it needs no memory of its own: it
// *covers* that packet. The receiver need not ask for a covered packet. Once all places of a code
// hold a packet or a parity, the code's missing packets can be computed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bitmap.h"
#include "base/limits.h"
#include "base/packet_index.h"
#include "wire/code_grid.h"

namespace leeway::protocol {

class ParityLedger {
 public:
  static constexpr std::uint8_t kPresent = 0xFF;

  // Starts a flow of `packets` packets, none of which has come. Allocates when it grows.
  void reset(std::uint32_t packets);

  // Returns true for the first copy of this parity.
  bool is_first(std::uint32_t number) { return !seen_.test_and_set(number); }
  // Returns the place that a parity covers from now on: the first place of its code that holds
  // neither a packet nor a parity. Returns nullopt if each missing packet of the code is covered
  // already.
  std::optional<PacketIndex> cover(wire::ParityPlace parity, const Bitmap& arrived);
  // Call it when the packet came or was computed, so that its place holds the packet itself.
  void uncover(PacketIndex index);

  bool covers_any() const { return covered_count_ > 0; }
  bool covers(PacketIndex index) const { return covered_.test(index.value); }
  // Returns the parity that lies in a covered place.
  wire::ParityPlace parity_at(PacketIndex index) const {
    return {grid_.code_of(index), rows_[index.value]};
  }
  std::uint64_t covered_word(std::size_t w) const { return covered_.word(w); }
  const wire::CodeGrid& grid() const { return grid_; }

  // Contents of the places of a code.
  struct Places {
    std::uint32_t count = 0;
    std::uint32_t covered = 0;
    bool full = true;                                     // no place is empty
    std::array<std::uint8_t, limits::kCodePackets> rows;  // kPresent, or the parity's row
  };
  Places places(std::uint32_t code, const Bitmap& arrived) const;

 private:
  wire::CodeGrid grid_{0};
  Bitmap seen_;  // by number of the parity
  Bitmap covered_;
  std::uint32_t covered_count_ = 0;
  std::vector<std::uint8_t> rows_;  // row of the parity that covers the packet
};

}  // namespace leeway::protocol
