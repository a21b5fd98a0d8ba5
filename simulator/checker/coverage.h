// I21: the error that a report predicts matches the error of the result.
//
// A sample is one shard of one call. It compares the mean square distance between the result and
// the true value with the variances in NoiseReport. The report knows which packets came, so
// distance and variances have the same expectation for every pattern of loss. This holds for
// contributions that are independent and have the same mean square per unit of work.
#pragma once

#include <cstdint>
#include <span>

#include "checker/call_ledger.h"
#include "checker/check.h"
#include "leeway/report.h"

namespace leeway::sim {

// kCoverageTolerance is relative. kCoverageSigmas is five, because in ten thousand seeds a
// difference of four standard errors would occur by chance.
inline constexpr double kCoverageTolerance = 0.1;
inline constexpr double kCoverageSigmas = 5.0;
inline constexpr std::uint64_t kCoverageSamplesLeast = 50;

class Coverage {
 public:
  // `mean`: mean of all contributions, weighted by their units, as if nothing had been lost.
  // `result`: the reporting rank's shard of the result. The caller divides a sum by the number of
  // ranks.
  void add(const NoiseReport& noise, std::span<const double> mean, std::span<const double> result);

  std::uint64_t samples() const { return samples_; }
  double predicted() const { return predicted_ / static_cast<double>(samples_); }
  double measured() const { return predicted() + difference_; }
  double standard_error() const;  // standard error of measured - predicted

  // Returns true if the measured and the predicted error agree within the tolerance and `sigmas`
  // standard errors.
  bool holds(double sigmas) const;

 private:
  std::uint64_t samples_ = 0;
  double predicted_ = 0.0;   // sum
  double difference_ = 0.0;  // mean of measured - predicted
  double squares_ = 0.0;     // sum of squared deviations from the mean
};

// Collects the samples of a run and checks them at its end.
class CoverageCheck {
 public:
  CoverageCheck(Check& check) : check_(check) {}

  void on_reduced(const CallLedger& call, Rank rank, const CollectiveReport& report,
                  std::span<const float> result);
  void finish();

 private:
  Check& check_;
  Coverage coverage_;
};

}  // namespace leeway::sim
