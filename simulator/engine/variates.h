// Times with the distributions of delay and compute models, drawn with integers and tables only.
//
// Every time is in nanoseconds and at most kLongestNs; parameters named _f32 are fractions times
// 2^32 (see to_f32 in fixed_point.h). The tails are those of 64-bit uniform draws and not cut at a
// table's end: an exponential reaches 44 means, a normal 9 deviations.
#pragma once

#include <cstdint>

#include "engine/random_stream.h"

namespace leeway::sim {

// 2.3 years. A larger parameter breaks the contract, and a larger result becomes this time.
inline constexpr std::int64_t kLongestNs = std::int64_t{1} << 56;

// Limit on inverse shapes and on deviations of logarithms, so that no product overflows.
inline constexpr std::uint64_t kLargestFactorF32 = 16 * kOneF32;

// Draws from an exponential distribution with mean `mean_ns` >= 0; the logarithm is exact to
// 1.8e-7. Takes two words.
std::int64_t exponential(RandomStream& stream, std::int64_t mean_ns);

// Returns `minimum_ns` * u^(-1 / shape) for u uniform in (0, 1); `inverse_shape_f32` is 1 / shape,
// at most
// 16. The mean exists for shapes above 1 only: shape / (shape - 1) * minimum. Relative error
// (1.8e-7 * inverse shape + 6e-8). Two words.
std::int64_t pareto(RandomStream& stream, std::int64_t minimum_ns, std::uint64_t inverse_shape_f32);

// Draws a standard normal number times 2^32 (a multiple of 16); its square is exact to 4e-7. A
// trial takes two words, and 1.27 trials are needed on average.
std::int64_t standard_normal_f32(RandomStream& stream);

// The result may be negative; the caller decides what a negative time means.
std::int64_t normal(RandomStream& stream, std::int64_t mean_ns, std::int64_t deviation_ns);

// Draws exp of a normal number: `sigma_f32` is the deviation of the logarithm, at most 16. The mean
// is median * exp(sigma^2 / 2).
std::int64_t lognormal(RandomStream& stream, std::int64_t median_ns, std::uint64_t sigma_f32);

}  // namespace leeway::sim
