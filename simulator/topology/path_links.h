// Path links: each ordered pair of ranks may have a link of its own. A mesh has no other links. In
// other topologies a packet passes the path link first, if a rule made one. Ranks that no rule
// treats differently form a class, so a thousand ranks do not need a million entries.
#pragma once

#include <cstdint>
#include <vector>

#include "leeway/status.h"
#include "topology/link_rules.h"

namespace leeway::sim {

class PathLinks {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kClassesMax = 2048;

  // `everywhere`: every pair has a path link, even without a rule. Adds the properties to `pool`.
  static Result<PathLinks> make(const LinkRules& rules, std::uint32_t ranks, bool everywhere,
                                PropertyPool& pool);

  bool any() const { return any_; }

  // Returns an index into the pool, or kNone if the pair has no path link.
  std::uint32_t properties(std::uint32_t from, std::uint32_t to) const {
    return table_[class_of_[from] * classes_ + class_of_[to]];
  }

 private:
  void divide(const RankFlags& by);

  bool any_ = false;
  std::uint32_t classes_ = 1;
  std::vector<std::uint32_t> class_of_;  // by rank
  std::vector<std::uint32_t> table_;     // by both classes
};

}  // namespace leeway::sim
