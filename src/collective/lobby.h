// Datagrams of communicators that this process has not joined yet. A peer that learnt of a new
// communicator a moment earlier may send at once.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "leeway/types.h"

namespace leeway::collective {

// The latest datagrams, whoever sent them. That one is dropped is loss like any other.
class Lobby {
 public:
  static constexpr std::size_t kPlaces = 64;

  void put(Rank slot, std::uint32_t epoch, ByteSpan datagram);

  // Hands over and forgets what came for the communicator, in the order of its arrival.
  template <typename Use>
  void take(std::uint32_t epoch, Use&& use) {
    for (std::size_t i = 0; i < kPlaces; ++i) {
      Place& place = places_[(next_ + i) % kPlaces];
      if (place.bytes.empty() || place.epoch != epoch) continue;
      use(place.slot, ByteSpan(place.bytes));
      place.bytes.clear();
    }
  }

 private:
  struct Place {
    std::uint32_t epoch = 0;
    Rank slot = kNoRank;
    std::vector<std::byte> bytes;  // empty: free
  };

  std::array<Place, kPlaces> places_;
  std::size_t next_ = 0;  // the oldest
};

}  // namespace leeway::collective
