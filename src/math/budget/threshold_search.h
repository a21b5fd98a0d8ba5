// The automatic compute threshold. Of 200 candidates it takes the one at which synchronous steps
// would have got most done per unit of time, had it been in force in a window of measured steps.
// This is the algorithm of arXiv 2306.10598's public code, unless stop_share_1024 or indifference
// is given.
//
// No rank needs to see another's latencies. Each reduces its own to small tables, which are
// combined by two rounds of element-wise maxima and sums. Every rank then finishes the same
// arithmetic on the same numbers:
//
//   search.add_bounds(mine, wall);   bounds() = maximum over ranks
//   search.add_tables(mine);         cuts() = maximum over ranks, sums() = sum over ranks
//   search.choose()
//
// The simulator holds the latencies of all ranks: it adds them all to one search and combines
// nothing. The choice is the same bit for bit either way, on every machine: times are whole
// nanoseconds, and all else but counts comes from single IEEE operations in a fixed order. Not
// thread-safe; allocates when constructed only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leeway/types.h"

namespace leeway::budget {

// Limits of the search's input; sums of times then stay within 63 bits.
inline constexpr std::int64_t kLatencyMaxNs = 3'600'000'000'000;  // longest micro-batch: an hour
inline constexpr std::uint32_t kMicroBatchesMax = 4096;           // in a step
inline constexpr std::uint32_t kWindowStepsMax = 256;

// One rank's micro-batch latencies over a window: step after step, in each micro_batches times from
// 0 to kLatencyMaxNs, in the order in which they ran.
struct LatencyTable {
  std::span<const std::int64_t> ns;
  std::uint32_t micro_batches = 0;
  // Real compute time of each step, needed if part of the latencies was imputed because a threshold
  // cut it off (LatencyWindow). If empty, it is the sum of the step's latencies.
  std::span<const std::int64_t> computed_ns = {};
  // Treatment of the micro-batch that runs when the threshold passes. With a number, should_stop()
  // is asked once in it, at this part of its time in 1024ths. If the threshold has passed by then,
  // the micro-batch is given up. Otherwise, and always with 0, it is completed and counts, as in
  // StepGate. If unset, it costs no time and does not count, which is what the public code assumes.
  std::optional<std::uint32_t> stop_share_1024 = std::nullopt;
};

struct ThresholdSearchOptions {
  std::uint32_t steps = 44;        // steps in the window, 1 .. kWindowStepsMax
  std::uint32_t candidates = 200;  // at least 2
  // Micro-batches that every step completes in any case. Candidates begin at the earliest end of
  // the last of these, or of micro-batch 5, counted from 0, whichever is later. (5 is the public
  // code's rule. In steps of no more than 5 it is the one 2/3 of the way through.)
  std::uint32_t micro_batches_min = 0;
  // If above 0, takes the largest candidate whose speed-up is less than this below the best one's:
  // the optimum is flat, and dropped micro-batches are lost. With 0, as in the public code, takes
  // the best.
  double indifference = 0.0;
};
// The library's value of `indifference`, for steps that end as StepGate ends them.
inline constexpr double kIndifference = 0.002;

// Means over the window's steps.
struct ThresholdChoice {
  Duration threshold{0};
  double drop_rate = 0.0;          // fraction of micro-batches that are not completed
  double time_cut = 0.0;           // fraction of the step's time that is saved
  double effective_speedup = 0.0;  // (1 - drop) / (1 - cut) - 1: gain in micro-batches per time

  // Returns whether the choice gains anything. If latencies hardly vary, every candidate loses, and
  // no threshold is better than the best of them.
  bool worthwhile() const { return effective_speedup > 0.0; }
};

class ThresholdSearch {
 public:
  explicit ThresholdSearch(const ThresholdSearchOptions& options = {});

  // Forgets everything added.
  void reset();

  // First round. `wall`: time from the start of the window's first step to the start of the step
  // after its last. It counts as no shorter than the compute time of the slowest ranks. `latencies`
  // holds ThresholdSearchOptions::steps steps.
  void add_bounds(const LatencyTable& latencies, Duration wall);
  std::span<std::int64_t> bounds() { return bounds_; }

  // Second round, once bounds() are those of all ranks.
  void add_tables(const LatencyTable& latencies);
  std::span<std::int64_t> cuts() { return cuts_; }
  std::span<double> sums() { return sums_; }  // whole numbers below 2^53: exact in any order

  // Returns the best candidate, the smaller of equals (but see indifference). If nothing was added
  // or took time, returns a threshold of 0, which is not worthwhile.
  ThresholdChoice choose() const;

  // Returns the effect that the candidate would have had; candidate <
  // ThresholdSearchOptions::candidates.
  ThresholdChoice evaluate(std::uint32_t candidate) const;

  // Time per step that synchronous steps spend beyond their slowest rank's compute time, as a mean
  // over the window.
  Duration overhead() const;

 private:
  // The candidates: evenly spaced from the least to the longest compute time of any rank and step.
  struct Range {
    std::int64_t least_ns, span_ns, intervals;
    std::int64_t at(std::int64_t candidate) const {  // without overflow: floor(span * i / n)
      return least_ns + span_ns / intervals * candidate +
             span_ns % intervals * candidate / intervals;
    }
  };
  Range range() const;
  std::int64_t& negative_least() { return bounds_[bounds_.size() - 2]; }
  std::size_t place(std::uint32_t candidate, std::uint32_t step) const;
  void tabulate_step(std::uint32_t step, const Range& range,
                     std::span<const std::int64_t> latencies,
                     std::optional<std::uint32_t> stop_share_1024);

  ThresholdSearchOptions options_;
  // Values of the slowest rank. First [step] the sum of its latencies, then [step] its compute
  // time, then minus the least candidate, then the wall time.
  std::vector<std::int64_t> bounds_;
  // [candidate][step] time at which the slowest rank stops.
  std::vector<std::int64_t> cuts_;
  // [candidate][step] micro-batches completed by then; the last entry is the micro-batches of a
  // step.
  std::vector<double> sums_;
};

}  // namespace leeway::budget
