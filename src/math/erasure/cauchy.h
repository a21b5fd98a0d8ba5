// Erasure code over up to 128 packets: a systematic Cauchy code over GF(2^8). Parity of row r is
// the sum over packets i of 1 / ((128 + r) ^ i) times packet i, byte by byte (polynomial 0x11D).
// Any missing packets can be computed from as many parities of any rows, because every square part
// of a Cauchy matrix can be inverted (Bloemer et al. 1995).
//
// All packets are as long as the first, except the last one. A shorter last packet is treated as if
// zeros followed it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/limits.h"
#include "erasure/products.h"
#include "leeway/types.h"

namespace leeway::erasure {

// Writes the parities of rows `row` and following, each as long as the first packet.
void encode(std::span<const ByteSpan> packets, std::uint32_t row,
            std::span<const MutableByteSpan> out);

// Computes missing packets. Its memory (some 420 KiB) is reused by every run().
class Recovery {
 public:
  static constexpr std::uint8_t kPresent = 0xFF;

  // rows[i] is kPresent if packet i is there; otherwise packets[i] holds a parity and rows[i] is
  // its row. No row appears twice. The missing packets replace the parities. `bytes`: length of all
  // packets but the last. `last_parity`: the parity in place of the last packet if this is missing
  // and shorter than `bytes`; otherwise empty.
  void run(std::span<const MutableByteSpan> packets, std::span<const std::uint8_t> rows,
           std::size_t bytes, ByteSpan last_parity);

 private:
  static constexpr std::size_t kRows = limits::kCodeParitiesMax;
  static constexpr std::size_t kPackets = limits::kCodePackets;

  void invert(std::span<const std::uint8_t> rows);
  void make_matrix(std::size_t packets, std::span<const std::uint8_t> rows);

  // A row of each matrix below belongs to one missing packet or to its parity.
  std::size_t missing_ = 0;
  std::array<std::uint8_t, kRows> missing_at_;
  std::array<std::uint8_t, kRows * kRows> inverse_;
  // Coefficients by which present packets enter the parities.
  std::array<std::uint8_t, kRows * kPackets> seen_;
  std::array<std::uint8_t, kRows * kPackets> matrix_;  // coefficients that give missing packets
  std::array<std::uint8_t, internal::kTableBytesMax * kRows * kPackets> tables_;
};

// Returns the probability that a code of `packets` packets and `parities` parities falls short, if
// a datagram is lost with probability `loss`. Losses are independent, or come in bursts that make
// the variance of their number `dispersion` (1 or more) times its mean.
double shortfall(std::uint32_t packets, std::uint32_t parities, double loss,
                 double dispersion = 1.0);

}  // namespace leeway::erasure
