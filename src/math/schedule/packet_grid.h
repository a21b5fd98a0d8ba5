// Cuts a shard into packets and chunks.
//
// A packet is the content of one datagram, and the unit of loss. A chunk is a run of packets that
// fits the cache. It is the unit in which complete data are reduced and passed on while the rest of
// the shard is still on its way.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/contracts.h"
#include "base/limits.h"
#include "base/packet_index.h"

namespace leeway::schedule {

class PacketGrid {
 public:
  // Decoded bytes of one contribution's chunk. Four contributions and the result stay within a 1
  // MiB L2 cache.
  static constexpr std::size_t kChunkBytes = std::size_t{128} * 1024;

  PacketGrid() = default;
  PacketGrid(std::size_t elements, std::uint32_t elements_per_packet, std::size_t element_bytes)
      : elements_(elements), elements_per_packet_(elements_per_packet) {
    LEEWAY_ASSERT(elements_per_packet > 0 && element_bytes > 0);
    const std::size_t packet_bytes = elements_per_packet * element_bytes;
    const auto fitting =
        static_cast<std::uint32_t>(std::max<std::size_t>(1, kChunkBytes / packet_bytes));
    chunk_packets_ = std::min(std::bit_floor(fitting), limits::kChunkPacketsMax);
  }

  // Returns the same grid, but a shard without elements gets one empty packet, which tells the
  // receiver that the shard is empty.
  PacketGrid with_empty_packet() const {
    PacketGrid grid = *this;
    grid.least_packets_ = 1;
    return grid;
  }

  std::size_t elements() const { return elements_; }
  std::uint32_t elements_per_packet() const { return elements_per_packet_; }
  std::uint32_t chunk_packets() const { return chunk_packets_; }
  std::uint32_t packets() const {
    return std::max(
        least_packets_,
        static_cast<std::uint32_t>((elements_ + elements_per_packet_ - 1) / elements_per_packet_));
  }
  // Elements of the last packet.
  std::uint32_t tail() const { return packets() == 0 ? 0 : packet_elements({packets() - 1}); }
  std::uint32_t chunks() const { return (packets() + chunk_packets_ - 1) / chunk_packets_; }

  // Place in the shard of the packet's first element.
  std::size_t packet_offset(PacketIndex index) const {
    return std::size_t{index.value} * elements_per_packet_;
  }
  std::uint32_t packet_elements(PacketIndex index) const {
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(elements_per_packet_, elements_ - packet_offset(index)));
  }
  ChunkIndex chunk_of(PacketIndex index) const { return {index.value / chunk_packets_}; }
  // The chunk's first packet, and its number of packets.
  PacketIndex chunk_begin(ChunkIndex chunk) const { return {chunk.value * chunk_packets_}; }
  std::uint32_t chunk_size(ChunkIndex chunk) const {
    return std::min(chunk_packets_, packets() - chunk_begin(chunk).value);
  }
  // The n-th packet of the chunk.
  PacketIndex packet_in(ChunkIndex chunk, std::uint32_t n) const {
    return {chunk_begin(chunk).value + n};
  }

 private:
  std::size_t elements_ = 0;
  std::uint32_t least_packets_ = 0;
  std::uint32_t elements_per_packet_ = 1;
  std::uint32_t chunk_packets_ = 1;
};

}  // namespace leeway::schedule
