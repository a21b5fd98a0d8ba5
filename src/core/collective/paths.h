// Paths from this process to others, by slot. All communicators of the process share them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/contracts.h"
#include "leeway/types.h"
#include "protocol/path.h"

namespace leeway::collective {

class Paths {
 public:
  // Turns on the search for the longest datagram of each path. Call before meet().
  void measure(const protocol::SizeLimits& limits) {
    LEEWAY_ASSERT(paths_.empty());
    limits_ = limits;
  }
  const protocol::SizeLimits& limits() const { return limits_; }
  bool measured() const { return limits_.most != 0; }

  std::size_t slots() const { return paths_.size(); }
  bool has(std::size_t slot) const { return slot < paths_.size() && paths_[slot] != nullptr; }
  // Requires has(slot).
  protocol::Path& operator[](std::size_t slot) { return *paths_[slot]; }
  const protocol::Path& operator[](std::size_t slot) const { return *paths_[slot]; }

  // Returns the path to the process in the slot, and makes it if it is new. `bytes_max`: longest
  // datagram that both ends' interfaces send, so a search on a new path goes no higher.
  protocol::Path& meet(Rank slot, std::size_t bytes_max = SIZE_MAX) {
    if (slot >= paths_.size()) paths_.resize(slot + std::size_t{1});
    if (paths_[slot] == nullptr) {
      paths_[slot] = std::make_unique<protocol::Path>();
      protocol::SizeLimits limits = limits_;
      limits.most = std::min(limits.most, bytes_max);
      paths_[slot]->size.configure(limits);
    }
    return *paths_[slot];
  }

  // Calls use(slot, path) for each path, in the order of slots.
  template <typename Use>
  void each(Use&& use) {
    for (std::size_t slot = 0; slot < paths_.size(); ++slot) {
      if (paths_[slot] != nullptr) use(static_cast<Rank>(slot), *paths_[slot]);
    }
  }

 private:
  std::vector<std::unique_ptr<protocol::Path>> paths_;  // by slot; paths not met are null
  protocol::SizeLimits limits_;
};

}  // namespace leeway::collective
