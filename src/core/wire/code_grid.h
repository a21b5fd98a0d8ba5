// Divides the packets of a flow among erasure codes (WIRE 2.10). Packet i and parity i belong to
// code i modulo the number of codes. So the packets of one code lie far apart, and a burst of
// losses spreads over many codes.
#pragma once

#include <cstdint>

#include "base/limits.h"
#include "base/packet_index.h"

namespace leeway::wire {

// The code that a parity belongs to, and the parity's number (row) in that code.
struct ParityPlace {
  std::uint32_t code = 0;
  std::uint32_t row = 0;  // < limits::kCodeParitiesMax

  friend bool operator==(const ParityPlace&, const ParityPlace&) = default;
};

class CodeGrid {
 public:
  explicit constexpr CodeGrid(std::uint32_t packets)
      : packets_(packets), codes_((packets + limits::kCodePackets - 1) / limits::kCodePackets) {}

  constexpr std::uint32_t codes() const { return codes_; }
  // Limit on the number of parities of a flow.
  constexpr std::uint32_t parities_max() const { return codes_ * limits::kCodeParitiesMax; }
  constexpr ParityPlace parity(std::uint32_t number) const {
    return {number % codes_, number / codes_};
  }

  constexpr std::uint32_t code_of(PacketIndex index) const { return index.value % codes_; }
  // Number of packets of code `code`. The last of them may be the flow's last packet, which may be
  // shorter.
  constexpr std::uint32_t size(std::uint32_t code) const {
    return (packets_ - code + codes_ - 1) / codes_;
  }
  constexpr PacketIndex packet(std::uint32_t code, std::uint32_t n) const {
    return {code + n * codes_};
  }

 private:
  std::uint32_t packets_;
  std::uint32_t codes_;
};

}  // namespace leeway::wire
