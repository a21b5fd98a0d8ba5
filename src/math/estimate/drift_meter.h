// Measures what drift.h predicts, from values sampled in a running training.
//
// Samples, steps and gaps may be added in any order and number; result() is the average over all of
// them so far. All sums are doubles. Nothing is allocated after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "leeway/types.h"

namespace leeway::estimate {

// Mean squares per element, each 0 while nothing was added for it.
struct DriftMeasurement {
  double pair = 0.0;              // (x_a - x_b)^2 over pairs of ranks that do not own the element
  double owner = 0.0;             // (x_owner - x_a)^2
  double step_variance = 0.0;     // s^2
  double step_mean_square = 0.0;  // u^2
  double gap = 0.0;               // (fresh - stale)^2
  std::uint64_t samples = 0;      // elements compared
  std::uint64_t windows = 0;      // closed windows of steps
  std::uint64_t gaps = 0;
};

class DriftMeter {
 public:
  // `positions`: elements whose steps are followed. `window` >= 2: consecutive steps over which a
  // position's mean step is taken as constant.
  DriftMeter(std::size_t positions, std::uint32_t window);

  // Adds the values of one element on all ranks after a broadcast. Pairs need at least two ranks
  // besides the owner. A sample without other ranks, or with NaN or infinities, is skipped.
  void add_sample(std::span<const float> values, Rank owner);

  // Adds one optimizer step: new minus old value of every followed position, always in the same
  // order.
  //
  // For a position and a window of K steps with mean m and unbiased variance v, s^2 = v and u^2 =
  // m^2 - v/K. Both are unbiased if the steps are independent with one mean; m^2 alone would be too
  // large by the variance of m. s^2 + u^2 is always the mean square step; correlation only shifts
  // its two parts. Steps that keep their direction over a window (momentum) count as mean step,
  // which is how they act on a stale copy. Results are averages over positions and closed windows.
  void add_step(std::span<const float> delta);

  // Adds the square of (fresh value - old copy) on a rank that receives an element. An old copy
  // does not depend on who receives the broadcast. So each reception samples the gap given that
  // exactly one of a pair received.
  void add_gap(double square);

  DriftMeasurement result() const;

 private:
  // A running average, in which every value has the same weight.
  struct Mean {
    double sum = 0.0;
    std::uint64_t count = 0;

    void add(double value) {
      sum += value;
      ++count;
    }
    double value() const { return count == 0 ? 0.0 : sum / static_cast<double>(count); }
  };
  // Steps of one position in the open window (Welford: stable when the mean dwarfs the spread).
  struct Position {
    double mean = 0.0;
    double squares = 0.0;  // sum of squared deviations from the mean
  };

  void close_window();

  std::uint32_t window_;
  std::uint32_t steps_ = 0;  // in the open window
  std::vector<Position> positions_;
  Mean pair_;
  Mean owner_;
  Mean step_variance_;
  Mean step_mean_square_;
  Mean gap_;
  std::uint64_t samples_ = 0;
  std::uint64_t windows_ = 0;
};

}  // namespace leeway::estimate
