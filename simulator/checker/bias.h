// I10: an unbiased estimator's error averages zero.
//
// A sample is the mean error of one packet's elements in one result. The samples' mean must lie
// within kBiasSigmas standard errors of zero, once there are kBiasSamplesLeast of them. kBiasSigmas
// is five, because in ten thousand seeds a mean that is four standard errors off would occur by
// chance.
#pragma once

#include <cstdint>
#include <span>

#include "checker/check.h"

namespace leeway::sim {

inline constexpr double kBiasSigmas = 5.0;
inline constexpr std::uint64_t kBiasSamplesLeast = 10'000;

class Bias {
 public:
  Bias(Check& check, std::size_t packet_elements)
      : check_(check), packet_elements_(packet_elements) {}

  void on_reduced(std::span<const double> reference, std::span<const float> result);
  void finish();

 private:
  Check& check_;
  std::size_t packet_elements_;
  std::uint64_t samples_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

}  // namespace leeway::sim
