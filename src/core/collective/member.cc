#include "collective/member.h"

#include <utility>

namespace leeway::collective {
namespace {

std::vector<Rank> by_slot(std::span<const Rank> slots, Rank self) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < slots.size(); ++rank) {
    if (rank == self) continue;
    if (slots[rank] >= ranks.size()) ranks.resize(slots[rank] + std::size_t{1}, kNoRank);
    ranks[slots[rank]] = rank;
  }
  return ranks;
}

}  // namespace

Member::Member(const protocol::EndpointConfig& config, std::vector<Rank> slots,
               std::span<protocol::Path* const> paths, MemoryWatcher* watcher)
    : engine_(config, paths, watcher),
      slots_(std::move(slots)),
      ranks_(by_slot(slots_, config.self)),
      sizes_(config.self, slots_.size()) {}

}  // namespace leeway::collective
