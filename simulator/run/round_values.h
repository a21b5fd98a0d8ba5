// The numbers of one open round: contributions and results of all ranks. Ranks finish a round at
// different times, so both are kept until the last one has.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace leeway::sim {

class RoundValues {
 public:
  // A contribution is the sum over `weight` units of work.
  void add_contribution(std::span<const float> contribution, double weight);

  // `result` is what `rank` holds of the average, from element `offset` on. Equal results of
  // several ranks are kept once.
  void add_result(std::uint32_t rank, std::size_t offset, std::span<const float> result);

  // Call it when every contribution and result has been added. reference() is then the weighted
  // mean of the contributions in the order of adding, as if nothing had been lost.
  void close();
  std::span<const double> reference() const { return sums_; }

  struct Error {
    // Mean square of result minus reference, over elements and ranks. Negative without a result, or
    // without work behind the contributions.
    double mean_square = -1;
    double value_mean_square = -1;  // mean square of the reference
  };
  Error error() const;

  // Visits every result once for each rank that got it, with the part of the reference that it
  // estimates.
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
