#include "protocol/early_buffer.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "protocol/serial_number.h"

namespace leeway::protocol {

EarlyBuffer::EarlyBuffer(int peers, std::uint32_t slots_per_peer, std::size_t datagram_bytes)
    : slots_per_peer_(slots_per_peer),
      datagram_bytes_(datagram_bytes),
      slots_(static_cast<std::size_t>(peers) * slots_per_peer),
      memory_(std::make_unique_for_overwrite<std::byte[]>(slots_.size() * datagram_bytes)) {}

bool EarlyBuffer::put(Rank from, const EarlyKey& key, std::uint64_t part, ByteSpan datagram) {
  const std::size_t first = std::size_t{from} * slots_per_peer_;
  if (datagram.empty() || datagram.size() > datagram_bytes_ || first >= slots_.size()) return false;
  const std::span slots = std::span(slots_).subspan(first, slots_per_peer_);
  const auto holds_it = [&](const Slot& slot) {
    return slot.bytes != 0 && slot.part == part && slot.key == key;
  };
  auto slot = std::find_if(slots.begin(), slots.end(), holds_it);
  if (slot == slots.end()) {
    slot = std::find_if(slots.begin(), slots.end(), [](const Slot& any) { return any.bytes == 0; });
    if (slot == slots.end()) return false;
    ++held_;
  }
  *slot = {key, part, static_cast<std::uint32_t>(datagram.size())};
  const std::size_t at = first + static_cast<std::size_t>(slot - slots.begin());
  std::memcpy(memory_.get() + at * datagram_bytes_, datagram.data(), datagram.size());
  return true;
}

void EarlyBuffer::take(const EarlyKey& key, const Use& use) {
  take_slots(0, slots_.size(), key, use);
}

void EarlyBuffer::take_from(Rank peer, const EarlyKey& key, const Use& use) {
  const std::size_t first = std::size_t{peer} * slots_per_peer_;
  take_slots(first, first + slots_per_peer_, key, use);
}

void EarlyBuffer::for_each_key(
    const std::function<void(Rank from, const EarlyKey& key)>& visit) const {
  for (std::size_t i = 0; held_ > 0 && i < slots_.size(); ++i) {
    if (slots_[i].bytes != 0) visit(static_cast<Rank>(i / slots_per_peer_), slots_[i].key);
  }
}

void EarlyBuffer::drop_collectives_below(std::uint32_t number) {
  for (std::size_t i = 0; held_ > 0 && i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.bytes == 0 || slot.key.message || !after(number, slot.key.number)) continue;
    slot.bytes = 0;
    --held_;
  }
}

void EarlyBuffer::take_slots(std::size_t first, std::size_t last, const EarlyKey& key,
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
