// Limits how long a rank computes before it joins the reduction with the micro-batches it has
// (DropCompute, arXiv 2306.10598). A synchronous step then does not wait for the last micro-batch
// of its slowest rank. A training step is
//
//   while (budget.next_micro_batch()) {
//     forward(budget.micro_batch());
//     if (budget.should_stop()) break;                      // optional: gives up what runs
//     backward();                                           // adds to gradient
//   }
//   options.op = leeway::ReduceOp::avg;
//   options.weight = budget.weight();
//   communicator.all_reduce(std::span(gradient), options);  // the mean per completed micro-batch
//
// Every rank decides by itself: no message is sent or waited for before the reduction. Ranks
// exchange counts and, for the automatic threshold, measured latencies. Counts and latencies travel
// in exact all-reduces of a few 10 KB, which begin at fixed steps and are read some steps later. So
// all ranks must take the same steps, and none may issue another collective of the same
// communicator at the same time as next_micro_batch(). The method: src/math/budget/README.md.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "leeway/communicator.h"
#include "leeway/export.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// How long a step may compute: no_threshold, auto_threshold, or any duration above zero.
struct ComputeThreshold {
  // No threshold, a threshold that ranks derive from measured steps, or a given time.
  enum class Kind : std::uint8_t { none = 0, automatic, fixed };
  Kind kind = Kind::none;  // the kind of threshold
  Duration value{0};       // fixed only

  // A threshold of a kind without a time. Prefer no_threshold and auto_threshold.
  constexpr explicit ComputeThreshold(Kind kind_in) : kind(kind_in) {}
  // A fixed threshold of any duration above zero: `.threshold = 550ms`.
  template <typename Rep, typename Period>
  requires std::convertible_to<std::chrono::duration<Rep, Period>, Duration>
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr ComputeThreshold(std::chrono::duration<Rep, Period> value_in)
      : kind(Kind::fixed), value(value_in) {}
};
// No step is stopped early.
// NOLINTNEXTLINE(readability-identifier-naming)
inline constexpr ComputeThreshold no_threshold{ComputeThreshold::Kind::none};
// The threshold at which the measured steps would have completed the most work per time, equal on
// all ranks. No step is stopped before the first measurement, nor if latencies vary too little to
// gain.
// NOLINTNEXTLINE(readability-identifier-naming)
inline constexpr ComputeThreshold auto_threshold{ComputeThreshold::Kind::automatic};

// The number that weight() returns, the divisor of an average.
enum class Normalisation : std::uint8_t {
  realised_weight = 0,  // completed micro-batches; unbiased, whatever was dropped or lost
  // Planned micro-batches, as in the code of the DropCompute paper: the gradient shrinks by the
  // part that was dropped.
  fixed_maximum,
};

// How a job makes up for dropped micro-batches. With extra_steps and requeue, steps_due() grows
// until as many micro-batches were completed as were planned.
enum class DropCompensation : std::uint8_t {
  none = 0,
  extra_steps,  // the extra steps take new data
  requeue,      // data that were not used come first in the next step
};

// How much a rank plans to compute in a step, and when it stops.
struct ComputeBudgetOptions {
  // Micro-batches planned for a step of this rank, 1 .. 4096; must be given.
  std::uint32_t micro_batches = 0;
  // How long a step may compute before it joins the reduction.
  ComputeThreshold threshold = auto_threshold;
  std::uint64_t warm_up_steps = 6;  // first steps, in which nothing is stopped or measured
  // Micro-batches that each step completes even if its time is over; 0 .. micro_batches.
  std::uint32_t micro_batches_min = 1;
  Normalisation normalisation = Normalisation::realised_weight;  // the divisor of an average
  DropCompensation compensation = DropCompensation::none;        // for dropped micro-batches

  // Steps between two exchanges, 6 .. 256; the automatic threshold uses the latencies measured in
  // these steps. With 0 there is no exchange, and global counts come from synchronize(); 0 is not
  // allowed with the automatic threshold.
  std::uint32_t window_steps = 44;
  // A new estimate of the threshold replaces the one in force after `reestimate_steps` steps. It
  // does so earlier if the mean latency of a micro-batch has changed by more than the fraction
  // `drift_tolerance` since the estimate in force was made. If either option is 0, its condition is
  // switched off.
  std::uint64_t reestimate_steps = 1000;
  double drift_tolerance = 0.1;
  Duration exchange_deadline = std::chrono::seconds(30);

  // Returns monotonic time since any origin. If empty, std::chrono::steady_clock is used.
  std::function<Duration()> clock;
  // Returns the seconds that an accelerator spent on the micro-batch completed last; called once
  // after each micro-batch. The duration of a step is the sum of these seconds or the time by the
  // clock, whichever is more. If empty, only the clock counts.
  std::function<double()> device_seconds;
};

// Counts over ended steps. Only clock_clamps and latency_clamps include a step that still runs.
struct ComputeCounts {
  std::uint64_t steps = 0;          // steps that ended
  std::uint64_t steps_stopped = 0;  // steps that ended before their last micro-batch
  std::uint64_t planned = 0;        // micro-batches planned
  std::uint64_t completed = 0;      // micro-batches completed
  std::uint64_t dropped = 0;        // micro-batches planned and not completed
  // micro-batches among `dropped` that were begun, and given up by should_stop()
  std::uint64_t aborted = 0;
  // Clock readings that lie before the previous one, or more than an hour after it, within a step.
  // The time in between counts as zero, or as an hour.
  std::uint64_t clock_clamps = 0;
  // Device times that are NaN, negative or above an hour. The host's time counts instead.
  std::uint64_t latency_clamps = 0;
  // Steps stopped by a threshold below the shortest micro-batch seen so far. Each completes one
  // micro-batch nevertheless; otherwise training would stand still.
  std::uint64_t threshold_clamps = 0;
};

// A threshold estimated from the micro-batches of all ranks over one window. The predicted_ fields
// come from a normal model with the mean and standard deviation of these micro-batches' latencies.
// Rates are fractions of 1.
struct ThresholdEstimate {
  Duration threshold{0};   // limit on a step's compute time
  double drop_rate = 0.0;  // fraction of the micro-batches that are not completed
  double time_cut = 0.0;   // fraction of a step's time that is saved
  // Relative gain in micro-batches per time. 0 or less: no step is stopped.
  double effective_speedup = 0.0;
  double predicted_threshold_s = 0.0;
  double predicted_drop_rate = 0.0;
  double predicted_effective_speedup = 0.0;
  double micro_batch_mean_s = 0.0;
  double micro_batch_deviation_s = 0.0;
  double overhead_s = 0.0;  // time of a step beyond the slowest rank's compute time
};

// Statistics since creation.
struct ComputeStatistics {
  ComputeCounts local;                  // counts of this rank
  ComputeCounts global;                 // sum over ranks, as of the last exchange or synchronize()
  std::uint64_t exchanges = 0;          // exchanges between all ranks that were begun
  std::uint64_t exchange_waits = 0;     // steps that waited for an exchange
  std::uint64_t exchange_failures = 0;  // failed exchanges; the threshold stays as it was
  std::uint64_t estimates = 0;          // estimates put in force
  std::uint64_t drifts = 0;             // estimates put in force because latencies had changed
  std::optional<ThresholdEstimate> estimate;  // the estimate put in force last
};

// A run of micro-batches, numbered as ComputeBudget::micro_batch() does.
struct MicroBatchRange {
  std::uint64_t first = 0;  // number of the first
  std::uint64_t count = 0;  // number of micro-batches; 0 is an empty run
};

// Decides when a rank stops computing in a step. In each step call next_micro_batch() until it
// returns false, or leave the loop when should_stop() returns true; then reduce with weight(). Not
// thread-safe. The communicator must outlive it.
class LEEWAY_EXPORT ComputeBudget {
 public:
  // All ranks must call it, and each waits for all others. Fails on all ranks if the options of one
  // rank are out of range (kInvalidArgument). Fails if ranks differ in options other than
  // micro_batches, micro_batches_min and the threshold's value (kMismatch), because exchanges would
  // then not match.
  static Result<std::unique_ptr<ComputeBudget>> create(Communicator& communicator,
                                                       const ComputeBudgetOptions& options);
  // Waits for an exchange in flight, at most until the exchange's deadline.
  ~ComputeBudget();
  ComputeBudget(const ComputeBudget&) = delete;
  ComputeBudget& operator=(const ComputeBudget&) = delete;

  // Returns true if the rank must run another micro-batch; the previous one, if any, counts as
  // completed. Returns false if the step is over. The first call after the end of a step begins the
  // next step. Make that call right after the optimizer's step, so that waiting for data counts as
  // compute time.
  bool next_micro_batch();
  // Call it between forward and backward. Returns true if the step is over and the current
  // micro-batch does not count; then leave the loop.
  bool should_stop();

  // The next three functions describe the current step, or the last step if none is running.
  double weight() const;            // CollectiveOptions::weight for the step's gradient
  std::uint32_t completed() const;  // micro-batches completed
  MicroBatchRange dropped() const;  // micro-batches planned and not completed; for the data loader
  // Index of the micro-batch to compute now, that is, since next_micro_batch() last returned true.
  // It counts this rank's micro-batches in the order of the rank's data.
  std::uint64_t micro_batch() const;
  // Returns how many steps are still to run: `steps_planned` less the steps that ended. If drops
  // are compensated, it adds the steps that make up for the micro-batches dropped so far. The
  // result is the same on all ranks at the same step, and exact after synchronize().
  std::uint64_t steps_due(std::uint64_t steps_planned) const;

  Duration threshold() const;  // the threshold in force; Duration::max() if none
  // Counts of what was computed, dropped and exchanged so far.
  ComputeStatistics statistics() const;
  // Returns the error of the last exchange that failed; else an error if the threshold is shorter
  // than every micro-batch; else ok.
  Status status() const;

  // Brings statistics().global up to date. All ranks must call it, between steps.
  Status synchronize();

 private:
  struct Impl;
  explicit ComputeBudget(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace leeway
