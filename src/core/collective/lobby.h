// Keeps datagrams of communicators that this process has not joined yet. A peer that has joined a
// moment earlier may send at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "leeway/types.h"
#include "wire/packet.h"

namespace leeway::collective {

// Keeps the latest kPlaces datagrams of all senders. Older ones are dropped, and count as lost. A
// bare datagram (a type without contents) replaces its earlier copy: peers repeat bare datagrams
// until they are answered, and the copies must not displace other datagrams.
class Lobby {
 public:
  static constexpr std::size_t kPlaces = 64;

  struct Dropped {
    Rank slot;
    std::uint32_t epoch;
  };

  // Keeps the datagram. If an earlier datagram was dropped to make room, returns the sender and the
  // epoch of the dropped datagram.
  std::optional<Dropped> put(const wire::Prefix& prefix, Rank slot, ByteSpan datagram);

  // Calls use(slot, datagram) for each datagram of the communicator, in the order of arrival, and
  // forgets it.
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
    wire::PacketType type = wire::PacketType::data;
    std::vector<std::byte> bytes;  // a free place has none
  };

  Place& place_for(const wire::Prefix& prefix, Rank slot);

  std::array<Place, kPlaces> places_;
  std::size_t next_ = 0;  // index of the oldest datagram's place
};

}  // namespace leeway::collective
