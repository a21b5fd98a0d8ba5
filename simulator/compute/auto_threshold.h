// Sets the compute threshold that ranks agree on during a run. The library's search
// (src/math/budget) computes it from the ranks' times in a window of rounds. All ranks adopt it
// some rounds later.
//
// Ranks exchange their times in the background, so the exchange costs no simulated time. The rounds
// until adoption stand for the time that the exchange takes. The search leaves out a rank that is
// dead or rounds behind, and so has not finished its window when the first rank adopts the
// threshold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "budget/latency_window.h"
#include "budget/step_gate.h"
#include "budget/threshold_search.h"

namespace leeway::sim {

struct AutoThresholdOptions {
  std::uint32_t ranks = 1;
  std::uint32_t micro_batches = 1;
  std::uint32_t first_round = 0;  // first round of the first window
  std::uint32_t window_rounds = 44;
  std::uint32_t adopt_after = 1;  // rounds between a window and the first with its threshold
  // rounds from one window's end to the next window's end, at least window_rounds + adopt_after;
  // with 0 there is one window only
  std::uint32_t every_rounds = 0;
};

class AutoThreshold {
 public:
  explicit AutoThreshold(const AutoThresholdOptions& options);

  // Call it when a rank begins a round. Returns the round's threshold, or budget::kNoThreshold.
  Duration on_begin(Instant now, std::uint32_t rank, std::uint32_t round);

  // Call it when the rank has finished computing in the round.
  void on_computed(std::uint32_t rank, std::uint32_t round, const budget::StepGate& gate);

  const budget::ThresholdChoice* choice() const { return choice_ ? &*choice_ : nullptr; }

 private:
  struct RankWindow {
    budget::LatencyWindow latencies;
    Instant begin;
    // time from the begin of the window to the begin of the round after it; 0 until that round
    // begins
    Duration wall{0};
    std::uint32_t stop_share_1024 = 0;
  };

  std::uint32_t window_begin() const { return window_end_ - options_.window_rounds; }
  std::uint32_t adoption() const { return window_end_ + options_.adopt_after; }
  void search();
  void open_next_window();

  AutoThresholdOptions options_;
  // Number of the round after the window that is being filled.
  std::uint32_t window_end_;
  std::uint32_t adopted_from_ = UINT32_MAX;  // first round with the latest threshold
  Duration threshold_ = budget::kNoThreshold;
  Duration threshold_before_ = budget::kNoThreshold;
  std::vector<RankWindow> ranks_;
  budget::ThresholdSearch search_;
  std::optional<budget::ThresholdChoice> choice_;
};

}  // namespace leeway::sim
