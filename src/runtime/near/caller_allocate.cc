// Allocates memory that all ranks map. An allocation is a call of its own.
#include <utility>

#include "near/caller.h"

namespace leeway::near {

std::string Caller::region_name(Rank rank) const {
  return name_ + "-" + std::to_string(rank) + "-" + std::to_string(terms_.call);
}

Result<Mapping> Caller::own_memory(std::size_t place, std::size_t bytes) const {
  if (place == kRegionsMax)
    return Status::error(StatusCode::kResourceExhausted, "%zu regions are in use", kRegionsMax);
  const std::string name = region_name(arena_.self());
  const auto file = MemoryFile::create(folder_, name, bytes);
  if (!file.ok()) return file.status();
  auto memory = file->map(0, bytes);
  if (!memory.ok()) MemoryFile::remove_name(folder_, name);
  return memory;
}

Result<std::vector<Mapping>> Caller::peers_memory(std::size_t bytes) const {
  std::vector<Mapping> all(peers_.size());
  for (Rank rank = 0; rank < arena_.ranks(); ++rank) {
    if (rank == arena_.self()) continue;
    const auto file = MemoryFile::open(folder_, region_name(rank), bytes);
    if (!file.ok()) return file.status();
    auto memory = file->map_to_read();
    if (!memory.ok()) return memory.status();
    all[rank] = std::move(*memory);
  }
  return all;
}

// An allocation has two steps. After step 1 all ranks have made a file. After step 2 all ranks have
// mapped the others' files.
Result<std::shared_ptr<Region>> Caller::allocate(std::size_t bytes, std::uint64_t number,
                                                 Instant submitted, Duration deadline) {
  if (Status status = begin("allocate", number, submitted, deadline); !status.ok())
    return fail(status);
  regions_->drop_freed();
  const std::size_t pages = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  const std::size_t place = regions_->free_place();
  auto own = own_memory(place, pages);
  Descriptor& line = next_descriptor();
  line.what.store(kAllocation);
  line.count.store(bytes);
  line.condition.store(
      static_cast<std::uint64_t>(own.ok() ? Condition::ordinary : Condition::apart));
  line.to.store(0);
  Status status = meet();
  std::shared_ptr<Region> region;
  if (status.ok() && !anyone_apart()) {
    region = std::make_shared<Region>(std::move(*own));
    status = share(pages, place, region);
  }
  if (own.ok()) MemoryFile::remove_name(folder_, region_name(arena_.self()));
  if (!status.ok()) return fail(status);
  if (region != nullptr && region->shared()) return region;
  auto ordinary = Mapping::anonymous(pages);
  if (!ordinary.ok()) return ordinary.status();
  return std::make_shared<Region>(std::move(*ordinary));
}

Status Caller::share(std::size_t bytes, std::size_t place, const std::shared_ptr<Region>& region) {
  auto peers = peers_memory(bytes);
  own_descriptor().to.store(peers.ok() ? 1 : 0);
  own_descriptor().to_at.store(place);
  Word& number = arena_.own_line().regions[place];
  number.store(terms_.call);
  post(2);
  const Status status = await(2);
  bool all = status.ok();
  std::vector<std::size_t> places;
  for (Rank rank = 0; rank < arena_.ranks(); ++rank) {
    all &= descriptor_of(rank).to.load() == 1;
    places.push_back(descriptor_of(rank).to_at.load() % kRegionsMax);
  }
  if (all) {
    regions_->add(terms_.call, region, place, std::move(*peers), std::move(places));
  } else {
    number.store(0);
  }
  return status;
}

}  // namespace leeway::near
