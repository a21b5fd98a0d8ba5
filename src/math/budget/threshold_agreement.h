// Brings the ranks of a group to the same automatic threshold without waiting for one another.
// Ranks measure every window of W steps and exchange the tables of ThresholdSearch. Each exchange
// has kExchangeSteps steps to finish. Then all ranks compute the same threshold from the same
// tables. This class says what to exchange and when; the caller exchanges it.
//
//   step w W                the w-th window has ended: bounds() becomes the maximum over ranks
//   kExchangeSteps later    cuts() becomes the maximum, sums() and totals() the sum over ranks
//   2 kExchangeSteps later  conclude(), which may change threshold()
//
// Steps are numbered from the end of the warm-up. The exchanges depend on the number of the step
// alone, and never on the result of an exchange: ranks must issue the same operations even if one
// of them failed on some rank.
//
// Without an automatic threshold only totals() are exchanged. Not thread-safe; allocates when
// constructed only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "budget/latency_window.h"
#include "budget/step_gate.h"
#include "budget/threshold_search.h"
#include "leeway/compute_budget.h"

namespace leeway::budget {

struct AgreementOptions {
  bool automatic = true;
  std::uint32_t ranks = 1;
  std::uint32_t micro_batches = 1;  // micro-batches in a step of this rank
  std::uint32_t micro_batches_min = 1;
  std::uint64_t warm_up_steps = 0;
  std::uint32_t window_steps = 44;  // kWindowStepsMin .. kWindowStepsMax
  std::uint64_t reestimate_steps = 1000;
  double drift_tolerance = 0.1;
};

class ThresholdAgreement {
 public:
  // Steps from an exchange until its result is needed.
  static constexpr std::uint32_t kExchangeSteps = 2;
  static constexpr std::uint32_t kWindowStepsMin = 2 * kExchangeSteps + 2;

  enum class Stage : std::uint8_t { none, bounds, tables, conclusion };

  explicit ThresholdAgreement(const AgreementOptions& options);

  // Returns the stage that is due at the beginning of this step, counted from 0.
  Stage due(std::uint64_t step) const;

  // Call both in every step past the warm-up, whatever is due: begin_step() first, end_step() when
  // the step has ended. begin_step() makes bounds() if a window has just ended.
  void begin_step(std::uint64_t step, Instant start);
  void end_step(const StepGate& gate);

  // Call it if tables are due. `bounds_ok`: bounds() now holds the maximum over all ranks.
  void make_tables(const ComputeCounts& counts, bool bounds_ok);
  // Call it if a conclusion is due. `ok`: cuts(), sums() and totals() are combined over all ranks.
  void conclude(std::uint64_t step, bool ok);

  // Tables to be combined over ranks in place. Without an automatic threshold there are only
  // totals().
  std::span<std::int64_t> bounds() { return search_.bounds(); }
  std::span<std::int64_t> cuts() { return search_.cuts(); }
  std::span<double> sums() { return search_.sums(); }
  std::span<double> totals() { return totals_; }

  Duration threshold() const { return threshold_; }
  const ComputeCounts& global() const { return global_; }
  std::uint64_t estimates() const { return estimates_; }
  std::uint64_t drifts() const { return drifts_; }
  // The estimate behind threshold(), with the timing model's prediction. Unset if no rank had
  // latencies.
  std::optional<ThresholdEstimate> estimate() const;

  static constexpr std::size_t kCounts = 9;
  using CountRow = std::array<double, kCounts>;
  // Convert counts to numbers and back, so that ranks can add them up.
  static CountRow row_of(const ComputeCounts& counts);
  static ComputeCounts counts_of(std::span<const double, kCounts> row);

 private:
  // Indices in totals_ behind the counts. kFailed: ranks on which the exchange of bounds failed.
  // kBehind: ranks on which an earlier exchange of tables failed. kMixed: ranks whose threshold
  // changed within the window. kSum .. kLatencies: sum, sum of squares (in seconds) and number of
  // latencies.
  enum Total : std::size_t {
    kFailed = kCounts,
    kMixed,
    kBehind,
    kSum,
    kSquares,
    kLatencies,
    kTotals
  };

  void end_window(Instant now);
  double mean_of(Total total) const;
  bool estimate_due(std::uint64_t step);
  void adopt(std::uint64_t step);

  AgreementOptions options_;
  LatencyWindow window_;  // being measured
  // The latencies of the last full window; empty if this rank completed nothing.
  std::vector<std::int64_t> measured_;
  std::uint32_t stop_share_1024_ = 0;  // StepGate::stop_share_1024() of the last step
  bool window_mixed_ = false;          // the threshold changed within the window
  bool measured_mixed_ = false;
  Instant window_start_;
  ThresholdSearch search_;
  std::array<double, kTotals> totals_{};

  Duration threshold_ = kNoThreshold;
  ComputeCounts global_;
  ThresholdChoice choice_;  // the choice that is in force, and its basis
  double mean_s_ = 0.0;
  double deviation_s_ = 0.0;
  Duration overhead_{0};
  std::uint64_t estimates_ = 0;
  std::uint64_t drifts_ = 0;
  std::uint64_t estimated_at_ = 0;  // step of the latest estimate
  bool behind_ = false;             // this rank lacks a conclusion that others may have drawn
  bool catching_up_ = false;        // some rank is behind, or the conclusion had no latencies
};

}  // namespace leeway::budget
