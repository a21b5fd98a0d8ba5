#include "collective/lobby.h"

namespace leeway::collective {

void Lobby::put(Rank slot, std::uint32_t epoch, ByteSpan datagram) {
  Place& place = places_[next_];
  next_ = (next_ + 1) % kPlaces;
  place.epoch = epoch;
  place.slot = slot;
  place.bytes.assign(datagram.begin(), datagram.end());
}

}  // namespace leeway::collective
