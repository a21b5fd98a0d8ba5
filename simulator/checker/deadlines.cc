#include "checker/deadlines.h"

#include <algorithm>

namespace leeway::sim {

void Deadlines::on_submit(Instant now, std::uint32_t rank, Duration deadline) {
  RankState& state = ranks_[rank];
  state.open = true;
  state.submitted_at = now;
  state.paused_for = Duration(0);
  state.deadline = deadline;
}

void Deadlines::look(Instant now, std::uint32_t rank, const char* what) {
  const RankState& state = ranks_[rank];
  const Duration paused =
      state.paused_for +
      (state.paused ? now - std::max(state.paused_at, state.submitted_at) : Duration(0));
  const Duration took = now - state.submitted_at - paused;
  check_.expect(took <= state.deadline + slack_, [&] {
    return format_text(
        "rank %u: a call submitted at %.6f ms %s %.6f ms later (pauses apart); its "
        "deadline is %.6f ms",
        rank, static_cast<double>(state.submitted_at.ns) / 1e6, what,
        static_cast<double>(took.count()) / 1e6, static_cast<double>(state.deadline.count()) / 1e6);
  });
}

void Deadlines::on_done(Instant now, std::uint32_t rank) {
  if (!ranks_[rank].open) return;
  look(now, rank, "returned");
  ranks_[rank].open = false;
}

void Deadlines::on_pause(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  if (state.paused) return;
  state.paused = true;
  state.paused_at = now;
}

void Deadlines::on_resume(Instant now, std::uint32_t rank) {
  RankState& state = ranks_[rank];
  if (!state.paused) return;
  state.paused = false;
  if (state.open) state.paused_for += now - std::max(state.paused_at, state.submitted_at);
}

void Deadlines::finish(Instant now) {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].open) look(now, rank, "is still open");
  }
}

}  // namespace leeway::sim
