#include "protocol/early_buffer.h"

#include <cstring>

namespace leeway::protocol {

EarlyBuffer::EarlyBuffer(int peers, std::uint32_t slots_per_peer, std::size_t datagram_bytes)
    : slots_per_peer_(slots_per_peer),
      datagram_bytes_(datagram_bytes),
      slots_(static_cast<std::size_t>(peers) * slots_per_peer),
      memory_(std::make_unique_for_overwrite<std::byte[]>(slots_.size() * datagram_bytes)) {}

bool EarlyBuffer::put(Rank from, std::uint64_t key, ByteSpan datagram) {
  const std::size_t first = std::size_t{from} * slots_per_peer_;
  if (datagram.empty() || datagram.size() > datagram_bytes_ || first >= slots_.size()) return false;
  for (std::size_t i = first; i < first + slots_per_peer_; ++i) {
    if (slots_[i].bytes != 0) continue;
    slots_[i] = {key, static_cast<std::uint32_t>(datagram.size())};
    std::memcpy(memory_.get() + i * datagram_bytes_, datagram.data(), datagram.size());
    ++held_;
    return true;
  }
  return false;
}

void EarlyBuffer::take(std::uint64_t key, const Use& use) {
  take_slots(0, slots_.size(), key, use);
}

void EarlyBuffer::take_from(Rank peer, std::uint64_t key, const Use& use) {
  const std::size_t first = std::size_t{peer} * slots_per_peer_;
  take_slots(first, first + slots_per_peer_, key, use);
}

void EarlyBuffer::take_slots(std::size_t first, std::size_t last, std::uint64_t key,
                             const Use& use) {
  if (held_ == 0) return;
  for (std::size_t i = first; i < last; ++i) {
    if (slots_[i].bytes == 0 || slots_[i].key != key) continue;
    const ByteSpan datagram(memory_.get() + i * datagram_bytes_, slots_[i].bytes);
    slots_[i].bytes = 0;
    --held_;
    use(static_cast<Rank>(i / slots_per_peer_), datagram);
  }
}

}  // namespace leeway::protocol
