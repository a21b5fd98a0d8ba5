// Parity of one flow's packets. Most of its cost is reading the packets. So one reading computes
// several rows (parities of one code), and all receivers that get the same block share them.
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "base/bitmap.h"
#include "base/crc32c.h"
#include "base/growing_buffer.h"
#include "erasure/cauchy.h"
#include "protocol/round_client.h"
#include "wire/code_grid.h"

namespace leeway::collective {

class ParityCache {
 public:
  // Starts a flow of `packets` packets of `bytes` bytes. Allocates if that is more than before.
  void reset(std::uint32_t packets, std::size_t bytes) {
    grid_ = wire::CodeGrid(packets);
    bytes_ = bytes;
    buffer_.reserve(grid_.parities_max() * bytes);  // pages that are never written take no memory
    made_.resize(std::size_t{grid_.codes()} * kGroups);
  }

  // Copies a parity to `scratch`, the memory of a train, so that no transport's device must map
  // this cache. packet(index) returns the payload of a packet of the flow; all payloads must be
  // final. `sums`: whether a checksum is wanted.
  template <typename Packet>
  protocol::Payload payload(wire::ParityPlace parity, MutableByteSpan scratch, bool sums,
                            Packet packet) {
    const std::uint32_t group = parity.row / kRows;
    if (!made_.test_and_set(group * grid_.codes() + parity.code)) make(parity.code, group, packet);
    std::memcpy(scratch.data(), place(parity).data(), bytes_);
    const ByteSpan sent = scratch.first(bytes_);
    return {sent, sums ? crc32c(sent) : 0};
  }

 private:
  // Rows computed at a time. Some of them are never sent, but that costs less than another reading
  // of the packets.
  static constexpr std::uint32_t kRows = 8;
  static constexpr std::uint32_t kGroups = limits::kCodeParitiesMax / kRows;
  static_assert(limits::kCodeParitiesMax % kRows == 0);

  MutableByteSpan place(wire::ParityPlace parity) {
    return {buffer_.data() + (std::size_t{parity.row} * grid_.codes() + parity.code) * bytes_,
            bytes_};
  }
  template <typename Packet>
  void make(std::uint32_t code, std::uint32_t group, Packet packet) {
    std::array<ByteSpan, limits::kCodePackets> packets;
    for (std::uint32_t n = 0; n < grid_.size(code); ++n) packets[n] = packet(grid_.packet(code, n));
    std::array<MutableByteSpan, kRows> out;
    for (std::uint32_t i = 0; i < kRows; ++i) out[i] = place({code, group * kRows + i});
    erasure::encode(std::span(packets).first(grid_.size(code)), group * kRows, out);
  }

  wire::CodeGrid grid_{0};
  std::size_t bytes_ = 0;
  GrowingBuffer buffer_;
  Bitmap made_;  // by group of rows and code
};

}  // namespace leeway::collective
