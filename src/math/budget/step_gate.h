// Decides before every micro-batch of a training step whether to run it, or to go to the reduction
// with the micro-batches that are done. Once the step has lasted as long as the threshold, no
// further micro-batch begins. The caller passes in the time.
//
//   while (gate.next(now)) {
//     forward();
//     if (gate.should_stop(now)) break;  // optional: without it every micro-batch is completed
//     backward();
//   }
//   reduce(sum, /*weight=*/gate.completed());
//
// A step begins with the first next() after the previous step's end. Not thread-safe; allocates
// when constructed only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"
#include "budget/threshold_search.h"
#include "leeway/compute_budget.h"

namespace leeway::budget {

inline constexpr Duration kNoThreshold = Duration::max();

struct StepGateOptions {
  std::uint32_t micro_batches = 1;      // a step, 1 .. kMicroBatchesMax
  std::uint32_t micro_batches_min = 1;  // micro-batches completed in any case; 0 .. micro_batches
  std::uint64_t warm_up_steps = 0;      // first steps, which are never stopped
  Duration threshold = kNoThreshold;    // above 0
};

class StepGate {
 public:
  explicit StepGate(const StepGateOptions& options);

  // Counts the running micro-batch, if there is one, as completed. Returns true if another is to
  // run, and false if the step has ended.
  bool next(Instant now);
  // Like next(now), for a micro-batch that took `device_s` seconds on a device (ignored at the
  // start of a step). The threshold applies to the host's time of the step or to the sum of its
  // device times, whichever is more.
  bool next(Instant now, double device_s);
  // Call it while a micro-batch runs. If it returns true, the step ends, and that micro-batch does
  // not count.
  bool should_stop(Instant now);

  // The threshold holds from the next step on; it is above 0, or kNoThreshold.
  void set_threshold(Duration threshold);
  Duration threshold() const { return options_.threshold; }
  const StepGateOptions& options() const { return options_; }

  bool in_step() const { return in_step_; }
  std::uint64_t steps_begun() const { return steps_begun_; }

  // completed() and latencies_ns() describe the step that is running or ended last.
  std::uint32_t completed() const { return completed_; }
  std::span<const std::int64_t> latencies_ns() const {  // by completed micro-batch
    return std::span(latencies_ns_).first(completed_);
  }
  // Run time of the micro-batch that should_stop() gave up; unset if none was.
  std::optional<Duration> aborted_after() const { return aborted_after_; }
  // Returns how far into a micro-batch should_stop() is asked, in 1024ths of the micro-batch's host
  // time, on average over the completed micro-batches in which it was asked. Returns 0 if there are
  // none.
  std::uint32_t stop_share_1024() const;
  // Start of the step on the gate's own clock, which never goes back.
  Instant step_start() const { return step_start_; }

  const ComputeCounts& counts() const { return counts_; }
  // The shortest completed micro-batch so far. Before the first one it is an hour.
  Duration shortest() const { return Duration(shortest_ns_); }

 private:
  bool next(Instant now, std::optional<double> device_s);
  void begin(Instant now);
  void complete(std::optional<double> device_s);
  void end();
  void read(Instant now, bool pause);
  bool time_is_up() const;

  StepGateOptions options_;
  ComputeCounts counts_;
  std::uint64_t steps_begun_ = 0;
  bool in_step_ = false;
  bool may_stop_ = false;  // past the warm-up
  std::uint32_t completed_ = 0;
  Instant reading_;     // the caller's clock
  Instant time_;        // our own time at the caller's latest reading
  Instant step_start_;  // on our own clock, like the times below
  Instant micro_batch_start_;
  Duration device_time_{0};  // sum over the step's micro-batches
  std::optional<Duration> aborted_after_;
  std::optional<Duration> asked_after_;  // when should_stop() was asked in the running micro-batch
  // Sums over the micro-batches that stop_share_1024() averages, in ns: time until should_stop()
  // was asked, and whole time.
  double asked_ns_ = 0.0;
  double asked_of_ns_ = 0.0;
  std::int64_t shortest_ns_ = kLatencyMaxNs;
  std::vector<std::int64_t> latencies_ns_;
};

}  // namespace leeway::budget
