// Which ranks of a communicator share a site, for collectives that go inside sites and between
// them. Arithmetic alone; the same on all ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leeway/types.h"

namespace leeway::collective {

// Sites are numbered in the order of their first ranks, and a site's ranks have places in their
// order. Ranks of equal place in different sites are counterparts.
class SiteMap {
 public:
  // `sites`: by rank, what tells one site from another; 0: none is named. Nothing where hops lead
  // nowhere: a rank names no site, there are fewer than two, they have one rank each, or unequally
  // many.
  static std::optional<SiteMap> of(std::span<const std::uint64_t> sites, Rank self);

  Rank self() const { return self_; }
  int sites() const { return static_cast<int>(ranks_.size()); }
  int ranks_per_site() const { return static_cast<int>(ranks_.front().size()); }
  int size() const { return sites() * ranks_per_site(); }
  Rank rank(int site, int place) const {
    return ranks_[static_cast<std::size_t>(site)][static_cast<std::size_t>(place)];
  }
  // Of this rank.
  int site() const { return site_; }
  int place() const { return place_; }
  // The ranks of this one's site, by place; its counterparts and itself, by site.
  std::vector<Rank> inside() const { return ranks_[static_cast<std::size_t>(site_)]; }
  std::vector<Rank> across() const;

 private:
  Rank self_ = 0;
  std::vector<std::vector<Rank>> ranks_;  // by site and place
  int site_ = 0;
  int place_ = 0;
};

}  // namespace leeway::collective
