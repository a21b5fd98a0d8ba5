#include "transport/fault/held_pool.h"

#include <algorithm>

namespace leeway::transport {

HeldPool::HeldPool(std::size_t slots, std::size_t datagram_bytes)
    : datagram_bytes_(datagram_bytes),
      memory_(std::make_unique_for_overwrite<std::byte[]>(slots * datagram_bytes)),
      held_(slots),
      free_(slots) {
  // keep() takes the slot that was freed last, so the slots in use stay in the cache.
  for (std::size_t i = 0; i < slots; ++i) free_[i] = static_cast<HeldIndex>(slots - 1 - i);
}

std::optional<HeldIndex> HeldPool::keep(const Received& datagram) {
  if (free_.empty() || datagram.bytes.size() > datagram_bytes_) return std::nullopt;
  const HeldIndex index = free_.back();
  free_.pop_back();
  std::copy(datagram.bytes.begin(), datagram.bytes.end(), memory_of(index));
  held_[index] = {
      datagram.from, static_cast<std::uint32_t>(datagram.bytes.size()), datagram.ecn, {}, {}};
  return index;
}

}  // namespace leeway::transport
