#include "collective/site_map.h"

#include <algorithm>

namespace leeway::collective {

std::optional<SiteMap> SiteMap::of(std::span<const std::uint64_t> sites, Rank self) {
  SiteMap map;
  map.self_ = self;
  std::vector<std::uint64_t> names;  // by site
  for (Rank rank = 0; rank < sites.size(); ++rank) {
    if (sites[rank] == 0) return std::nullopt;
    const auto found = std::find(names.begin(), names.end(), sites[rank]);
    const auto site = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) {
      names.push_back(sites[rank]);
      map.ranks_.emplace_back();
    }
    if (rank == self) {
      map.site_ = static_cast<int>(site);
      map.place_ = static_cast<int>(map.ranks_[site].size());
    }
    map.ranks_[site].push_back(rank);
  }
  if (map.ranks_.size() < 2 || map.ranks_.front().size() < 2) return std::nullopt;
  const auto is_as_large = [&](const std::vector<Rank>& site) {
    return site.size() == map.ranks_.front().size();
  };
  if (!std::all_of(map.ranks_.begin(), map.ranks_.end(), is_as_large)) return std::nullopt;
  return map;
}

std::vector<Rank> SiteMap::across() const {
  std::vector<Rank> counterparts;
  for (const std::vector<Rank>& site : ranks_)
    counterparts.push_back(site[static_cast<std::size_t>(place_)]);
  return counterparts;
}

}  // namespace leeway::collective
