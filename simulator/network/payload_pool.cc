#include "network/payload_pool.h"

#include <algorithm>

#include "base/contracts.h"
#include "network/packet.h"

namespace leeway::sim {
namespace {

constexpr std::size_t kAlignment = 16;

}  // namespace

PayloadPool::PayloadPool(std::size_t bytes_max)
    : bytes_max_(bytes_max),
      stride_(std::max<std::size_t>(1, (bytes_max + kAlignment - 1) / kAlignment) * kAlignment) {}

std::uint32_t PayloadPool::put(ByteSpan datagram) {
  LEEWAY_ASSERT(datagram.size() <= bytes_max_);
  if (free_ == kNoPayload) grow();
  const std::uint32_t payload = free_;
  Place& place = places_[payload];
  free_ = place.next_free;
  place.bytes = static_cast<std::uint32_t>(datagram.size());
  place.holders = 1;
  ++held_;
  std::copy(datagram.begin(), datagram.end(), memory_of(payload));
  return payload;
}

ByteSpan PayloadPool::get(std::uint32_t payload) const {
  if (payload == kNoPayload) return {};
  LEEWAY_ASSERT(payload < places_.size() && places_[payload].holders > 0);
  return {memory_of(payload), places_[payload].bytes};
}

void PayloadPool::hold(std::uint32_t payload) {
  if (payload == kNoPayload) return;
  LEEWAY_ASSERT(payload < places_.size() && places_[payload].holders > 0);
  ++places_[payload].holders;
}

void PayloadPool::release(std::uint32_t payload) {
  if (payload == kNoPayload) return;
  LEEWAY_ASSERT(payload < places_.size() && places_[payload].holders > 0);
  Place& place = places_[payload];
  if (--place.holders > 0) return;
  place.next_free = free_;
  free_ = payload;
  --held_;
}

// One block more; its places are taken lowest first.
void PayloadPool::grow() {
  LEEWAY_ASSERT(places_.size() < kNoPayload - kBlockPlaces);
  blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kBlockPlaces * stride_));
  const auto first = static_cast<std::uint32_t>(places_.size());
  places_.resize(places_.size() + kBlockPlaces);
  for (std::uint32_t i = kBlockPlaces; i-- > 0;) {
    places_[first + i].next_free = free_;
    free_ = first + i;
  }
}

}  // namespace leeway::sim
