// Random times for delay and compute models, drawn with integers and tables only.
//
// Times are in nanoseconds, at most kLongestNs. Parameters named _f32 are fractions times 2^32
// (fixed_point.h). No table cuts the tails off. The tails end where 64 uniform bits end: an
// exponential reaches 44 means, a normal 9 deviations.
#pragma once

#include <cstdint>

#include "engine/random_stream.h"

namespace leeway::sim {

// 2.3 years, the longest time. A parameter must not be larger; a larger result is cut to this time.
inline constexpr std::int64_t kLongestNs = std::int64_t{1} << 56;

// Limit on 1 / shape (Pareto) and on sigma (log-normal), so that no product overflows.
inline constexpr std::uint64_t kLargestFactorF32 = 16 * kOneF32;

// Draws from an exponential distribution with mean `mean_ns` >= 0. The error of the result's
// logarithm is below 1.8e-7. Uses up two words of the stream.
std::int64_t exponential(RandomStream& stream, std::int64_t mean_ns);

// Draws from a Pareto distribution: `minimum_ns` * u^(-1 / shape) for u uniform in (0, 1).
// `inverse_shape_f32` is 1 / shape, at most 16. Only shapes above 1 have a mean: shape / (shape -
// 1) * minimum. The relative error is 1.8e-7 / shape + 6e-8. Uses up two words.
std::int64_t pareto(RandomStream& stream, std::int64_t minimum_ns, std::uint64_t inverse_shape_f32);

// Draws a standard normal number times 2^32 (a multiple of 16). Its square has an error below 4e-7.
// A trial uses up two words, and 1.27 trials are needed on average.
std::int64_t standard_normal_f32(RandomStream& stream);

// Draws from a normal distribution. The result may be negative; the caller decides what that means.
std::int64_t normal(RandomStream& stream, std::int64_t mean_ns, std::int64_t deviation_ns);

// Draws exp of a normal number: `sigma_f32` is the deviation of the logarithm, at most 16. The mean
// is median * exp(sigma^2 / 2).
std::int64_t lognormal(RandomStream& stream, std::int64_t median_ns, std::uint64_t sigma_f32);

}  // namespace leeway::sim
