#include <algorithm>

#include "leeway/payload.h"

namespace leeway {
inline namespace v0 {

const char* to_string(PayloadHalf half) {
  return half == PayloadHalf::reduce ? "contribution to" : "block of";
}

std::size_t PayloadLayout::Half::packet_bytes(std::size_t elements) const {
  return header_bytes + (elements + block_elements - 1) / block_elements * block_bytes;
}

std::uint32_t PayloadLayout::Half::packets(Rank owner) const {
  if (owner >= blocks.size()) return 0;
  return static_cast<std::uint32_t>((blocks[owner].elements + packet_elements - 1) /
                                    packet_elements);
}

std::size_t PayloadLayout::Half::bytes(Rank owner) const {
  const std::uint32_t count = packets(owner);
  if (count == 0) return 0;
  const std::size_t full = std::size_t{count - 1} * packet_elements;
  return (count - 1) * packet_bytes(packet_elements) + packet_bytes(blocks[owner].elements - full);
}

std::uint32_t PayloadLayout::chunks(PayloadHalf which, Rank owner) const {
  const Half& side = half(which);
  const std::uint32_t packets = side.packets(owner);
  return packets == 0 ? 0 : (packets + side.chunk_packets - 1) / side.chunk_packets;
}

PayloadChunk PayloadLayout::chunk(PayloadHalf which, Rank owner, std::uint32_t index) const {
  const Half& side = half(which);
  const Block& block = side.blocks[owner];
  PayloadChunk chunk{.half = which, .owner = owner, .index = index};
  const std::uint32_t first_packet = index * side.chunk_packets;
  chunk.packets = std::min(side.chunk_packets, side.packets(owner) - first_packet);
  chunk.first_element = std::size_t{first_packet} * side.packet_elements;
  chunk.elements = std::min(std::size_t{chunk.packets} * side.packet_elements,
                            block.elements - chunk.first_element);
  const std::size_t full = std::size_t{chunk.packets - 1} * side.packet_elements;
  chunk.bytes = (chunk.packets - 1) * side.packet_bytes(side.packet_elements) +
                side.packet_bytes(chunk.elements - full);
  chunk.position = block.position + chunk.first_element;
  return chunk;
}

std::size_t PayloadLayout::landing_bytes() const {
  std::size_t bytes = reduce.bytes(rank) * static_cast<std::size_t>(size - 1);
  for (Rank owner = 0; owner < size; ++owner) {
    if (owner != rank) bytes += spread.bytes(owner);
  }
  return bytes;
}

}  // namespace v0
}  // namespace leeway
