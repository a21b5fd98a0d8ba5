#include "network/payload_pool.h"

#include <algorithm>
#include <bit>

#include "base/contracts.h"
#include "network/packet.h"

namespace leeway::sim {

PayloadPool::PayloadPool(std::size_t bytes_max)
    : bytes_max_(bytes_max), shelves_(shelf_for(bytes_max) + 1) {
  LEEWAY_ASSERT(shelves_.size() <= std::size_t{1} << kShelfBits);
  for (std::size_t shelf = 0; shelf < shelves_.size(); ++shelf)
    shelves_[shelf].stride = kBytesMin << shelf;
}

std::uint32_t PayloadPool::shelf_for(std::size_t bytes) {
  return static_cast<std::uint32_t>(
      std::bit_width((std::max<std::size_t>(bytes, 1) - 1) / kBytesMin));
}

std::uint32_t PayloadPool::put(ByteSpan datagram) {
  LEEWAY_ASSERT(datagram.size() <= bytes_max_);
  const std::uint32_t number = shelf_for(datagram.size());
  Shelf& shelf = shelves_[number];
  if (shelf.free == kNoPayload) shelf.grow();
  const std::uint32_t at = shelf.free;
  Place& place = shelf.places[at];
  shelf.free = place.next_free;
  place.bytes = static_cast<std::uint32_t>(datagram.size());
  place.holders = 1;
  ++held_;
  std::copy(datagram.begin(), datagram.end(), shelf.memory_of(at));
  return at << kShelfBits | number;
}

bool PayloadPool::is_held(std::uint32_t payload) const {
  const std::uint32_t shelf = shelf_of(payload);
  return shelf < shelves_.size() && place_of(payload) < shelves_[shelf].places.size() &&
         shelves_[shelf].places[place_of(payload)].holders > 0;
}

ByteSpan PayloadPool::get(std::uint32_t payload) const {
  if (payload == kNoPayload) return {};
  LEEWAY_ASSERT(is_held(payload));
  const Shelf& shelf = shelves_[shelf_of(payload)];
  const std::uint32_t at = place_of(payload);
  return {shelf.memory_of(at), shelf.places[at].bytes};
}

void PayloadPool::prefetch(std::uint32_t payload) const {
  if (payload == kNoPayload) return;
  const Shelf& shelf = shelves_[shelf_of(payload)];
  const std::uint32_t at = place_of(payload);
  __builtin_prefetch(&shelf.places[at], 1);
  __builtin_prefetch(shelf.memory_of(at));
}

void PayloadPool::hold(std::uint32_t payload) {
  if (payload == kNoPayload) return;
  LEEWAY_ASSERT(is_held(payload));
  ++place(payload).holders;
}

void PayloadPool::release(std::uint32_t payload) {
  if (payload == kNoPayload) return;
  LEEWAY_ASSERT(is_held(payload));
  Place& given_back = place(payload);
  if (--given_back.holders > 0) return;
  Shelf& shelf = shelves_[shelf_of(payload)];
  given_back.next_free = shelf.free;
  shelf.free = place_of(payload);
  --held_;
}

// Adds a block; its places are taken lowest first.
void PayloadPool::Shelf::grow() {
  LEEWAY_ASSERT(places.size() < (kNoPayload >> kShelfBits) - kBlockPlaces);
  blocks.push_back(std::make_unique_for_overwrite<std::byte[]>(kBlockPlaces * stride));
  const auto first = static_cast<std::uint32_t>(places.size());
  places.resize(places.size() + kBlockPlaces);
  for (std::uint32_t i = kBlockPlaces; i-- > 0;) {
    places[first + i].next_free = free;
    free = first + i;
  }
}

}  // namespace leeway::sim
