#include "near/regions.h"

#include <unistd.h>

#include <algorithm>

namespace leeway::near {

Region::~Region() {
  if (number_ == 0) return;
  if (const auto regions = regions_.lock()) regions->free(number_);
}

Regions::Regions(Station& station)
    : process_(::getpid()),
      station_(&station),
      freed_seen_(static_cast<std::size_t>(station.arena().ranks())) {}

std::size_t Regions::free_place() {
  const auto& regions = station_->arena().own_line().regions;
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::find_if(regions.begin(), regions.end(),
                   [](const Word& number) { return number.load() == 0; }) -
      regions.begin());
}

void Regions::add(std::uint64_t number, const std::shared_ptr<Region>& own, std::size_t place,
                  std::vector<Mapping> peers, std::vector<std::size_t> places) {
  own->number_ = number;
  own->regions_ = weak_from_this();
  const std::lock_guard lock(mutex_);
  entries_.push_back({number, own->memory(), place, std::move(peers), std::move(places)});
}

bool Regions::is_over(const Entry& entry) {
  return entry.own.empty() && std::all_of(entry.peers.begin(), entry.peers.end(),
                                          [](const Mapping& peer) { return peer.size() == 0; });
}

// Does nothing in a forked child: the region is the parent's, and its lock may be held for ever.
void Regions::free(std::uint64_t number) {
  if (::getpid() != process_) return;
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.number != number) continue;
    entry.own = {};
    if (station_ == nullptr) continue;
    station_->arena().own_line().regions[entry.place].store(0);
    station_->note_freed();
  }
  std::erase_if(entries_, is_over);
}

void Regions::drop_freed() {
  const Arena& arena = station_->arena();
  for (Rank peer = 0; peer < arena.ranks(); ++peer) {
    const Line& line = arena.line(peer);
    const std::uint32_t freed = line.freed.load();
    if (freed == freed_seen_[peer]) continue;
    freed_seen_[peer] = freed;
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_) {
      const Word& number = line.regions[entry.places[peer] % kRegionsMax];
      if (number.load() != entry.number) entry.peers[peer] = {};
    }
    std::erase_if(entries_, is_over);
  }
}

Regions::Spot Regions::find(ByteSpan tensor) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.own.empty() || tensor.data() < entry.own.data()) continue;
    const auto at = static_cast<std::size_t>(tensor.data() - entry.own.data());
    if (at <= entry.own.size() && tensor.size() <= entry.own.size() - at) return {entry.number, at};
  }
  return {};
}

const std::byte* Regions::peer(Rank rank, const Spot& spot, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.number != spot.number) continue;
    const Mapping& memory = entry.peers[rank];
    if (spot.at > memory.size() || bytes > memory.size() - spot.at) return nullptr;
    return memory.data() + spot.at;
  }
  return nullptr;
}

void Regions::close() {
  const std::lock_guard lock(mutex_);
  station_ = nullptr;
}

}  // namespace leeway::near
