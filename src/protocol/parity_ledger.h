// What a receiver remembers of the parity of one flow (WIRE 2.10).
//
// A parity that is of use lies in the place of a packet that is missing, which it *covers*: so it
// takes no memory of its own. A code whose places are all taken, by packets or by parity, can be
// undone. What is covered need not be asked for again: once the rest has come, it follows.
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

  // Nothing has come of a flow of so many packets. Allocates when it grows.
  void reset(std::uint32_t packets);

  // Whether it is the first copy of this parity.
  bool is_first(std::uint32_t number) { return !seen_.test_and_set(number); }
  // The place that a parity covers from now on. The last one of a code is taken last. Nothing: no
  // packet of the code is missing that is not covered.
  std::optional<PacketIndex> cover(wire::ParityPlace parity, const Bitmap& arrived);
  // The packet came, or was computed: its place is its own again.
  void uncover(PacketIndex index);

  bool covers_any() const { return covered_count_ > 0; }
  bool covers(PacketIndex index) const { return covered_.test(index.value); }
  // The parity that lies in a covered place.
  wire::ParityPlace parity_at(PacketIndex index) const {
    return {grid_.code_of(index), rows_[index.value]};
  }
  std::uint64_t covered_word(std::size_t w) const { return covered_.word(w); }
  const wire::CodeGrid& grid() const { return grid_; }

  // What lies in the places of a code.
  struct Places {
    std::uint32_t count = 0;
    std::uint32_t covered = 0;
    bool full = true;                                     // no place is empty
    std::array<std::uint8_t, limits::kCodePackets> rows;  // kPresent, or the parity's row
  };
  Places places(std::uint32_t code, const Bitmap& arrived) const;

 private:
  wire::CodeGrid grid_{0};
  Bitmap seen_;  // by number of parity
  Bitmap covered_;
  std::uint32_t covered_count_ = 0;
  std::vector<std::uint8_t> rows_;  // of what covers the packet
};

}  // namespace leeway::protocol
