#include "collective/lobby.h"

namespace leeway::collective {

std::optional<Lobby::Dropped> Lobby::put(const wire::Prefix& prefix, Rank slot, ByteSpan datagram) {
  Place& place = place_for(prefix, slot);
  std::optional<Dropped> dropped;
  if (!place.bytes.empty()) dropped = {place.slot, place.epoch};
  place.epoch = prefix.epoch;
  place.slot = slot;
  place.type = prefix.type;
  place.bytes.assign(datagram.begin(), datagram.end());
  return dropped;
}

Lobby::Place& Lobby::place_for(const wire::Prefix& prefix, Rank slot) {
  if (wire::is_bare(prefix.type)) {
    for (Place& place : places_) {
      const bool same =
          place.epoch == prefix.epoch && place.slot == slot && place.type == prefix.type;
      if (same && !place.bytes.empty()) return place;
    }
  }
  Place& oldest = places_[next_];
  next_ = (next_ + 1) % kPlaces;
  return oldest;
}

}  // namespace leeway::collective
