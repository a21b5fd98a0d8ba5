// The packets in flight, in numbered places of one array, and linked lists of them.
//
// Memory grows only when more packets are in flight than ever before. A packet keeps its place from
// its first link to its last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/contracts.h"
#include "network/huge_pages.h"
#include "network/packet.h"

namespace leeway::sim {

class PacketStore {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // One packet with its link to the next, in one cache line, so that reading it waits for memory
  // once.
  struct alignas(64) Place {
    Packet packet;
    std::int64_t arrival_ns = 0;
    std::uint32_t next = kNone;  // next place in the same list
  };

  // A list of places, first in, first out. `last` has no meaning while the list is empty.
  struct List {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;

    bool empty() const { return first == kNone; }
  };

  // The reference is valid until the next put().
  Place& operator[](std::uint32_t place) { return places_[place]; }
  const Place& operator[](std::uint32_t place) const { return places_[place]; }

  std::uint32_t put(const Packet& packet) {
    ++used_;
    if (free_ == kNone) [[unlikely]] {
      LEEWAY_ASSERT(places_.size() < kNone);
      places_.push_back({packet, 0, kNone});
      return static_cast<std::uint32_t>(places_.size() - 1);
    }
    const std::uint32_t place = free_;
    free_ = places_[place].next;
    places_[place].packet = packet;
    return place;
  }

  Packet take(std::uint32_t place) {
    --used_;
    places_[place].next = free_;
    free_ = place;
    return places_[place].packet;
  }

  void append(List& list, std::uint32_t place) {
    places_[place].next = kNone;
    (list.empty() ? list.first : places_[list.last].next) = place;
    list.last = place;
  }

  std::uint32_t pop_first(List& list) {
    const std::uint32_t place = list.first;
    list.first = places_[place].next;
    return place;
  }

  // Call it shortly before the packet is used.
  void prefetch(std::uint32_t place) const { __builtin_prefetch(places_.data() + place); }

  std::size_t used() const { return used_; }

 private:
  std::vector<Place, HugePages<Place>> places_;
  std::uint32_t free_ = kNone;
  std::size_t used_ = 0;
};

}  // namespace leeway::sim
