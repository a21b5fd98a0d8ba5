// The contributions and results of all ranks in one open round. They are kept until the last rank
// has finished the round.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace leeway::sim {

class RoundValues {
 public:
  // `contribution` is the sum over `weight` units of work.
  void add_contribution(std::span<const float> contribution, double weight);

  // `result` is the average as `rank` has it, from element `offset` on. Ranks with equal results
  // share one copy.
  void add_result(std::uint32_t rank, std::size_t offset, std::span<const float> result);

  // Call it after all contributions and results. reference() then returns the weighted mean of the
  // contributions, as if nothing had been lost.
  void close();
  std::span<const double> reference() const { return sums_; }

  struct Error {
    // Mean square of result minus reference, over elements and ranks. Negative if there is no
    // result, or if all contributions have weight 0.
    double mean_square = -1;
    double value_mean_square = -1;  // mean square of the reference
  };
  Error error() const;

  // Visits each rank's result, with the part of the reference that it estimates.
  void for_each_result(
      const std::function<void(std::uint32_t rank, std::span<const double> reference,
                               std::span<const float> result)>& visit) const;

 private:
  struct Result {
    std::size_t offset = 0;
    std::vector<float> values;
    std::vector<std::uint32_t> ranks;
  };
  std::vector<double> sums_;  // the mean, once closed
  double weight_ = 0;
  std::vector<Result> results_;
};

}  // namespace leeway::sim
