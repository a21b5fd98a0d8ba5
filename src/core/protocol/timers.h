// Timers of an endpoint: one for each collective, one for each peer, and two for the rank itself.
// Memory is laid out once. The order depends only on the armed times.
#pragma once

#include <optional>

#include "base/limits.h"
#include "base/time.h"
#include "protocol/round.h"
#include "protocol/timer_heap.h"

namespace leeway::protocol {

class Timers {
 public:
  explicit Timers(int peers) : heap_(kFirstLink + static_cast<std::size_t>(peers)) {}

  // Each timer wakes at the earliest time it was armed for.
  void arm_link(Rank peer, Instant at) { heap_.arm(kFirstLink + peer, at); }
  void arm_round(const Round& round, Instant at) {
    if (round.plan->point_to_point()) return arm_link(round.plan->point_peer, at);
    heap_.arm(round.slot, at);
  }
  // A message's timer stays armed: it is that of the link, which serves other operations, too.
  void disarm_round(const Round& round) {
    if (!round.plan->point_to_point()) heap_.disarm(round.slot);
  }
  void arm_group_probe(Instant at) { heap_.arm(kGroupProbe, at); }
  void arm_leave(Instant at) { heap_.arm(kLeave, at); }

  Instant next() const { return heap_.next(); }
  std::size_t count() const { return heap_.size(); }

  enum class What : std::uint8_t { round, group_probe, leave, link };
  struct Due {
    What what = What::round;
    std::size_t index = 0;  // the round's slot, or the link's peer
  };
  std::optional<Due> take_due(Instant now) {
    const auto timer = heap_.take_due(now);
    if (!timer) return std::nullopt;
    if (*timer >= kFirstLink) return Due{What::link, *timer - kFirstLink};
    if (*timer == kLeave) return Due{What::leave};
    if (*timer == kGroupProbe) return Due{What::group_probe};
    return Due{What::round, *timer};
  }

 private:
  static constexpr std::size_t kGroupProbe = limits::kOpenCollectivesMax;
  static constexpr std::size_t kLeave = kGroupProbe + 1;
  static constexpr std::size_t kFirstLink = kLeave + 1;

  TimerHeap heap_;
};

}  // namespace leeway::protocol
