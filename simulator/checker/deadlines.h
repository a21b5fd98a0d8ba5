// I4: a call of a live rank ends at its deadline plus a tick, or plus a larger slack that the
// caller gives. Time in which the rank was paused does not count.
#pragma once

#include <cstdint>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "checker/check.h"

namespace leeway::sim {

class Deadlines {
 public:
  Deadlines(Check& check, std::uint32_t ranks, Duration slack = Duration(limits::kTickNs))
      : check_(check), slack_(slack), ranks_(ranks) {}

  void on_submit(Instant now, std::uint32_t rank, Duration deadline);
  void on_done(Instant now, std::uint32_t rank);
  void on_pause(Instant now, std::uint32_t rank);
  void on_resume(Instant now, std::uint32_t rank);
  void on_kill(std::uint32_t rank) { ranks_[rank].open = false; }
  // Checks the calls that are still open.
  void finish(Instant now);

 private:
  struct RankState {
    bool open = false;
    bool paused = false;
    Instant submitted_at;
    Instant paused_at;
    Duration paused_for{0};  // pauses of the rank during the open call
    Duration deadline{0};
  };
  void look(Instant now, std::uint32_t rank, const char* what);

  Check& check_;
  const Duration slack_;
  std::vector<RankState> ranks_;
};

}  // namespace leeway::sim
