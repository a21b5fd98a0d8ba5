// The automatic compute threshold. Of 200 candidates it takes the one with the most micro-batches
// per unit of time. It computes this for a window of measured steps, as if the candidate had been
// in force. This is the algorithm of arXiv 2306.10598's public code, unless stop_share_1024 or
// indifference is given.
//
// No rank needs to see another's latencies. Each rank reduces its own latencies to small tables,
// which are combined in two exchanges of element-wise maxima and sums. Every rank then finishes the
// same arithmetic on the same numbers:
//
//   search.add_bounds(mine, wall);   bounds() = maximum over ranks
//   search.add_tables(mine);         cuts() = maximum over ranks, sums() = sum over ranks
//   search.choose()
//
// The simulator has the latencies of all ranks: it adds them all to one search and combines
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

// One rank's latencies over a window. `ns` has `micro_batches` latencies for each step, in the
// order in which they ran, each 0 .. kLatencyMaxNs.
struct LatencyTable {
  std::span<const std::int64_t> ns;
  std::uint32_t micro_batches = 0;
  // Measured compute time of each step. It is needed if LatencyWindow imputed latencies that a
  // threshold cut off. If empty, the compute time is the sum of the step's latencies.
  std::span<const std::int64_t> computed_ns = {};
  // What the search assumes about the micro-batch that is running when the threshold passes. If
  // unset, this micro-batch takes no time and does not count (the public code's assumption). If 0,
  // it is completed and counts. Otherwise should_stop() is asked once in it, at this many 1024ths
  // of its latency. It is given up if the threshold has passed by then, else it is completed and
  // counts.
  std::optional<std::uint32_t> stop_share_1024 = std::nullopt;
};

struct ThresholdSearchOptions {
  std::uint32_t steps = 44;        // steps in the window, 1 .. kWindowStepsMax
  std::uint32_t candidates = 200;  // at least 2
  // Micro-batches that every step completes in any case. The smallest candidate is the earliest
  // time at which a rank has completed these and the first six (the public code's rule). In steps
  // of at most 5 micro-batches, it is two thirds of the step's micro-batches, and one more, in
  // place of six.
  std::uint32_t micro_batches_min = 0;
  // If above 0, the search takes the largest candidate whose speed-up is at most this much below
  // the best one: near the optimum speed-ups hardly differ, and a larger threshold drops less work.
  // If 0, it takes the best, as the public code does.
  double indifference = 0.0;
};
// The library's value of `indifference`, for searches that set stop_share_1024.
inline constexpr double kIndifference = 0.002;

// A threshold and its effect, as means over the window's steps.
struct ThresholdChoice {
  Duration threshold{0};
  double drop_rate = 0.0;          // fraction of micro-batches that are not completed
  double time_cut = 0.0;           // fraction of the step's time that is saved
  double effective_speedup = 0.0;  // (1 - drop) / (1 - cut) - 1: gain in micro-batches per time

  // Returns true if the threshold gains anything. If latencies hardly vary, every candidate loses,
  // so it is best to have no threshold.
  bool worthwhile() const { return effective_speedup > 0.0; }
};

class ThresholdSearch {
 public:
  explicit ThresholdSearch(const ThresholdSearchOptions& options = {});

  // Forgets everything added.
  void reset();

  // Makes the table of the first exchange. `latencies` has ThresholdSearchOptions::steps steps.
  // `wall`: time from the start of the window's first step to the start of the step after its last.
  // It counts as no shorter than the compute time of the slowest ranks.
  void add_bounds(const LatencyTable& latencies, Duration wall);
  std::span<std::int64_t> bounds() { return bounds_; }

  // Makes the tables of the second exchange. Call it once bounds() holds the maximum over all
  // ranks.
  void add_tables(const LatencyTable& latencies);
  std::span<std::int64_t> cuts() { return cuts_; }
  std::span<double> sums() { return sums_; }  // whole numbers below 2^53: exact in any order

  // Returns the best candidate (see `indifference`), the smallest if several are equal. If nothing
  // was added, or nothing took time, returns a threshold of 0, which is not worthwhile.
  ThresholdChoice choose() const;

  // Returns the effect that the candidate would have had; candidate <
  // ThresholdSearchOptions::candidates.
  ThresholdChoice evaluate(std::uint32_t candidate) const;

  // Mean time per step beyond the compute time of the slowest rank (reduction, optimizer).
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
  // Maxima over ranks, in this order: for each step the sum of latencies; for each step the compute
  // time; the smallest candidate, negated so that a maximum finds it; the wall time.
  std::vector<std::int64_t> bounds_;
  // [candidate][step] time at which the slowest rank stops.
  std::vector<std::int64_t> cuts_;
  // [candidate][step] micro-batches that all ranks together complete if the candidate is in force.
  // The last entry is the number of micro-batches in a step of all ranks.
  std::vector<double> sums_;
};

}  // namespace leeway::budget
