// Groups the ranks of a communicator by site, for collectives that go inside sites and between
// them. All ranks compute the same map.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leeway/types.h"

namespace leeway::collective {

// Sites are numbered in the order of their first ranks, and a site's ranks have places in rank
// order. Ranks of equal place in different sites are counterparts.
class SiteMap {
 public:
  // `sites`: by rank, a number that identifies its site; 0 if the rank names no site. Returns
  // nullopt if hops would gain nothing or are impossible: a rank names no site, there are fewer
  // than two sites, or the sites have one rank each or different numbers of ranks.
  static std::optional<SiteMap> of(std::span<const std::uint64_t> sites, Rank self);

  Rank self() const { return self_; }
  int sites() const { return static_cast<int>(ranks_.size()); }
  int ranks_per_site() const { return static_cast<int>(ranks_.front().size()); }
  int size() const { return sites() * ranks_per_site(); }
  Rank rank(int site, int place) const {
    return ranks_[static_cast<std::size_t>(site)][static_cast<std::size_t>(place)];
  }
  // This rank's site, and its place there.
  int site() const { return site_; }
  int place() const { return place_; }
  // inside(): the ranks of this rank's site, by place. across(): this rank and its counterparts, by
  // site.
  std::vector<Rank> inside() const { return ranks_[static_cast<std::size_t>(site_)]; }
  std::vector<Rank> across() const;

 private:
  Rank self_ = 0;
  std::vector<std::vector<Rank>> ranks_;  // by site and place
  int site_ = 0;
  int place_ = 0;
};

}  // namespace leeway::collective
