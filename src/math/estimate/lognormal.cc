#include "estimate/lognormal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "base/contracts.h"

namespace leeway::estimate {
namespace {

using std::numbers::ln2;
using std::numbers::sqrt2;

constexpr std::uint32_t kMagnitudeMask = 0x7FFFFFFF;
constexpr std::uint32_t kInfinityBits = 0x7F800000;
constexpr int kFractionBits = 52;  // fraction bits of a double

// Returns the magnitude as a double, in which every nonzero float is normal, also a subnormal
// float. The double is made of integers, because a processor told to flush subnormals would read
// them as zero.
double widened(std::uint32_t magnitude) {
  if (magnitude < 0x800000) return static_cast<double>(magnitude) * 0x1p-149;
  constexpr std::uint64_t kRebias = std::uint64_t{1023 - 127} << kFractionBits;
  return std::bit_cast<double>((std::uint64_t{magnitude} << (kFractionBits - 23)) + kRebias);
}

// log2 of a normal double > 0, to 2e-7. The significand m is taken from [1/sqrt 2, sqrt 2), where
// ln m = 2 atanh(t), t = (m-1)/(m+1), |t| < 0.172, converges fast.
double log2_of(double value) {
  constexpr std::uint64_t kSqrtHalf = std::bit_cast<std::uint64_t>(sqrt2 / 2);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto exponent = static_cast<std::int64_t>(bits - kSqrtHalf) >> kFractionBits;
  const double m =
      std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << kFractionBits));
  const double t = (m - 1.0) / (m + 1.0);
  const double u = t * t;
  const double atanh = t * (1.0 + u * (1.0 / 3 + u * (1.0 / 5 + u * (1.0 / 7))));
  return static_cast<double>(exponent) + (2.0 / ln2) * atanh;
}

// Phi(-z), the normal distribution's upper tail.
double tail(double z) {
  return 0.5 * std::erfc(z / sqrt2);
}
double below(double z) {
  return tail(-z);
}

}  // namespace

void LognormalFit::add(std::span<const float> values) {
  for (const float value : values) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & kMagnitudeMask;
    if (magnitude == 0) sums_[kZeros] += 1.0;
    if (magnitude == 0 || magnitude >= kInfinityBits) continue;
    const double wide = widened(magnitude);
    const double log2 = log2_of(wide);
    sums_[kNonzero] += 1.0;
    sums_[kLog2] += log2;
    sums_[kLog2Squared] += log2 * log2;
    sums_[kSquare] += wide * wide;
  }
  sums_[kCount] += static_cast<double>(values.size());
}

double LognormalFit::mean_log2() const {
  return nonzero() > 0.0 ? sums_[kLog2] / nonzero() : 0.0;
}

double LognormalFit::sigma_log2() const {
  if (!(nonzero() > 0.0)) return 0.0;
  const double mean = mean_log2();
  return std::sqrt(std::max(0.0, sums_[kLog2Squared] / nonzero() - mean * mean));
}

double LognormalFit::mean_square() const {
  const double finite = nonzero() + zeros();
  return finite > 0.0 ? sums_[kSquare] / finite : 0.0;
}

// The fraction of values below the threshold, minus the fraction that becomes +-threshold.
double LognormalPruning::pruned_fraction(double threshold) const {
  if (!(threshold > 0.0)) return 0.0;
  const double z = (std::log(threshold) - mu) / s;
  const double mean = std::exp(mu + 0.5 * s * s);
  return below(z) - mean / threshold * below(z - s);
}

// Bisection on ln(threshold), as the pruned fraction grows with it from 0 to 1. The fraction is at
// most Phi(z), and 1 minus it at most tail(z) + mean/threshold. So it is 0 and 1 in a double at the
// ends of the search.
double LognormalPruning::threshold(double sparsity) const {
  LEEWAY_ASSERT(s > 0.0 && sparsity > 0.0 && sparsity < 1.0);
  double low = mu - 40.0 * s;
  double high = mu + s * s + 40.0 * s + 40.0;
  while (high - low > 1e-13 * std::max({1.0, std::abs(low), std::abs(high)})) {
    const double middle = 0.5 * (low + high);
    (pruned_fraction(std::exp(middle)) < sparsity ? low : high) = middle;
  }
  return std::exp(0.5 * (low + high));
}

// Pruning to T is unbiased, so <x, T> is E[x^2] per element and the cosine is sqrt(E[x^2]/E[T^2]).
double LognormalPruning::cosine(double threshold) const {
  if (!(threshold > 0.0)) return 1.0;
  const double z = (std::log(threshold) - mu) / s;
  const double kept = tail(z - 2.0 * s);  // both mean squares in units of E[x^2] = e^(2 mu + 2 s^2)
  const double raised = threshold * std::exp(-mu - 1.5 * s * s) * below(z - s);
  return 1.0 / std::sqrt(kept + raised);
}

}  // namespace leeway::estimate
