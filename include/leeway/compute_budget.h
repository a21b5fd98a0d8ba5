// How long a rank may compute before it joins the reduction with what it has (DropCompute, arXiv
// 2306.10598): a synchronous step then does not wait for the last micro-batch of its slowest rank.
// A training step is
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
// Every rank decides by itself: no message is sent or waited for before the reduction. What ranks
// share (counts, and for the automatic threshold measured latencies) travels in exact all-reduces
// of a few 10 KB that are issued at the beginning of fixed steps and looked at steps later. So all
// ranks must take the same steps, and none may issue another collective of the same communicator at
// the same time as next_micro_batch(). The method: src/budget/README.md.
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

// no_threshold, auto_threshold, or any duration above zero.
struct ComputeThreshold {
  // No threshold, one that ranks find from measured steps, or a given time.
  enum class Kind : std::uint8_t { none = 0, automatic, fixed };
  Kind kind = Kind::none;  // which of these
  Duration value{0};       // fixed only

  // Of a kind without a time: use no_threshold or auto_threshold.
  constexpr explicit ComputeThreshold(Kind kind_in) : kind(kind_in) {}
  // Fixed, at any duration above zero: `.threshold = 550ms`.
  template <typename Rep, typename Period>
  requires std::convertible_to<std::chrono::duration<Rep, Period>, Duration>
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr ComputeThreshold(std::chrono::duration<Rep, Period> value_in)
      : kind(Kind::fixed), value(value_in) {}
};
// No step is stopped.
// NOLINTNEXTLINE(readability-identifier-naming)
inline constexpr ComputeThreshold no_threshold{ComputeThreshold::Kind::none};
// The one at which the ranks' measured steps would have got most done per time, the same on all;
// none while nothing was measured and where latencies vary too little to gain.
// NOLINTNEXTLINE(readability-identifier-naming)
inline constexpr ComputeThreshold auto_threshold{ComputeThreshold::Kind::automatic};

// What weight() says, and so by what an average divides.
enum class Normalisation : std::uint8_t {
  realised_weight = 0,  // completed micro-batches: unbiased, whatever was dropped or lost
  // Planned ones, as the paper's code has it: the gradient shrinks by the part that was dropped.
  fixed_maximum,
};

// What becomes of dropped micro-batches; both ways steps_due() grows until as many were completed
// as were planned.
enum class DropCompensation : std::uint8_t {
  none = 0,
  extra_steps,  // the extra steps take new data
  requeue,      // data that were not used come first in the next step
};

// How much a rank plans to compute in a step, and when it stops.
struct ComputeBudgetOptions {
  std::uint32_t micro_batches = 0;  // of a step of this rank, 1 .. 4096; must be given
  // How long a step may compute before it joins the reduction.
  ComputeThreshold threshold = auto_threshold;
  std::uint64_t warm_up_steps = 6;      // nothing is stopped or measured in these
  std::uint32_t micro_batches_min = 1;  // completed whatever the time, 0 .. micro_batches
  Normalisation normalisation = Normalisation::realised_weight;  // by what an average divides
  DropCompensation compensation = DropCompensation::none;        // for dropped micro-batches

  // Steps between two exchanges, 6 .. 256: latencies of as many are measured for the automatic
  // threshold. 0: no exchange, for other thresholds only; global counts then come from
  // synchronize().
  std::uint32_t window_steps = 44;
  // An estimate replaces the one in force after this many steps (0: never), or when the mean
  // latency of a micro-batch is off by more than this part (0: never) from what the one in force
  // came from.
  std::uint64_t reestimate_steps = 1000;
  double drift_tolerance = 0.1;
  Duration exchange_deadline = std::chrono::seconds(30);

  // Monotonic time since any origin; empty: std::chrono::steady_clock.
  std::function<Duration()> clock;
  // Seconds an accelerator spent on the micro-batch completed last; called once after each. A step
  // has lasted as long as these add up to, or as long as the clock says, whichever is more. Empty:
  // the host's clock alone.
  std::function<double()> device_seconds;
};

// Of ended steps, but for the clamps: of all readings.
struct ComputeCounts {
  std::uint64_t steps = 0;          // that ended
  std::uint64_t steps_stopped = 0;  // that ended before their last micro-batch
  std::uint64_t planned = 0;        // micro-batches
  std::uint64_t completed = 0;      // micro-batches
  std::uint64_t dropped = 0;        // planned and not completed
  std::uint64_t aborted = 0;        // of those, begun and given up by should_stop()
  // Readings of a clock that went back, or by more than an hour ahead within a step; counted as no
  // time and as an hour.
  std::uint64_t clock_clamps = 0;
  // Device times that are no number, negative or beyond an hour; the host's time counts instead.
  std::uint64_t latency_clamps = 0;
  // Steps stopped by a threshold below the shortest micro-batch ever seen. They complete one
  // nevertheless: otherwise training would stand still.
  std::uint64_t threshold_clamps = 0;
};

// From the micro-batches of all ranks over one window, and beside it what the normal model predicts
// from their mean and deviation. Rates are parts of one.
struct ThresholdEstimate {
  Duration threshold{0};   // for the time that a step computes
  double drop_rate = 0.0;  // part of the micro-batches that are not completed
  double time_cut = 0.0;   // part of a step's time that is saved
  // Gain in micro-batches per time. 0 or less: nothing is stopped.
  double effective_speedup = 0.0;
  double predicted_threshold_s = 0.0;
  double predicted_drop_rate = 0.0;
  double predicted_effective_speedup = 0.0;
  double micro_batch_mean_s = 0.0;
  double micro_batch_deviation_s = 0.0;
  double overhead_s = 0.0;  // of a step, beyond the slowest rank's compute time
};

// Since creation.
struct ComputeStatistics {
  ComputeCounts local;                  // of this rank
  ComputeCounts global;                 // sum over ranks, as of the last exchange or synchronize()
  std::uint64_t exchanges = 0;          // between all ranks, begun
  std::uint64_t exchange_waits = 0;     // steps that waited for one
  std::uint64_t exchange_failures = 0;  // the threshold stays as it was
  std::uint64_t estimates = 0;          // put in force
  std::uint64_t drifts = 0;             // of those, because latencies had changed
  std::optional<ThresholdEstimate> estimate;  // the last put in force
};

// A run of micro-batches, numbered as ComputeBudget::micro_batch() does.
struct MicroBatchRange {
  std::uint64_t first = 0;  // number of the first
  std::uint64_t count = 0;  // how many; 0 is an empty run
};

// Not thread-safe. The communicator must outlive it.
class LEEWAY_EXPORT ComputeBudget {
 public:
  // Collective: waits for all ranks. Fails on all if one's options are out of range
  // (kInvalidArgument), or if they differ in more than micro_batches, micro_batches_min and the
  // threshold's value (kMismatch): exchanges would then not meet.
  static Result<std::unique_ptr<ComputeBudget>> create(Communicator& communicator,
                                                       const ComputeBudgetOptions& options);
  // Waits for an exchange in flight, at most for its deadline.
  ~ComputeBudget();
  ComputeBudget(const ComputeBudget&) = delete;
  ComputeBudget& operator=(const ComputeBudget&) = delete;

  // True: run another micro-batch; the one before, if any, counts. False: the step is over. The
  // first call after a step is over begins the next: right after the optimizer's, so that waiting
  // for data is compute time.
  bool next_micro_batch();
  // Between forward and backward. True: the step is over, and the micro-batch that runs does not
  // count; leave the loop.
  bool should_stop();

  // Of the step that runs or was over last.
  double weight() const;            // CollectiveOptions::weight for its gradient
  std::uint32_t completed() const;  // micro-batches
  MicroBatchRange dropped() const;  // planned for it and not completed; for the data loader
  // Number, in this rank's order of data, of the micro-batch that next_micro_batch() asked for.
  std::uint64_t micro_batch() const;
  // Steps still to run so that the ranks complete as many micro-batches as `steps_planned` steps
  // plan: more than planned where drops are compensated. The same on all ranks at the same step;
  // exact after synchronize().
  std::uint64_t steps_due(std::uint64_t steps_planned) const;

  Duration threshold() const;  // in force; Duration::max() if none
  // What was computed, dropped and exchanged so far.
  ComputeStatistics statistics() const;
  // What is out of order, if anything: the last exchange that failed, or else a threshold below
  // every micro-batch.
  Status status() const;

  // Collective: brings statistics().global up to date. Between steps.
  Status synchronize();

 private:
  struct Impl;
  explicit ComputeBudget(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace leeway
