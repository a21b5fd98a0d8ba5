#include "engine/variates.h"

#include "base/contracts.h"
#include "engine/fixed_point.h"

namespace leeway::sim {
namespace {

__extension__ using SignedWide = __int128;

constexpr SignedWide kHalfF32 = SignedWide{1} << 31;

constexpr auto kLongest = static_cast<std::uint64_t>(kLongestNs);

// Returns -log2 of a uniform number in (0, 1), times 2^32. The numerator is odd, so that the number
// is never 0 and its distribution is symmetric.
std::uint64_t negative_log2_of_uniform(RandomStream& stream) {
  return negative_log2(stream.u64() | 1);
}

void check_time(std::int64_t ns) {
  LEEWAY_ASSERT(ns >= 0 && ns <= kLongestNs);
}

}  // namespace

std::int64_t exponential(RandomStream& stream, std::int64_t mean_ns) {
  check_time(mean_ns);
  const Wide nats_f32 = Wide{negative_log2_of_uniform(stream)} * kLn2F63 >> 63;
  const Wide ns = (nats_f32 * static_cast<std::uint64_t>(mean_ns) + (kOneF32 >> 1)) >> 32;
  return static_cast<std::int64_t>(ns < kLongest ? static_cast<std::uint64_t>(ns) : kLongest);
}

std::int64_t pareto(RandomStream& stream, std::int64_t minimum_ns,
                    std::uint64_t inverse_shape_f32) {
  check_time(minimum_ns);
  LEEWAY_ASSERT(inverse_shape_f32 <= kLargestFactorF32);
  const Wide exponent = Wide{negative_log2_of_uniform(stream)} * inverse_shape_f32 >> 32;
  return static_cast<std::int64_t>(scale_by_exp2(static_cast<std::uint64_t>(minimum_ns),
                                                 static_cast<std::int64_t>(exponent), kLongest));
}

// Marsaglia's polar method: for a point (x, y) uniform in the unit disc and s = x^2 + y^2,
// x * sqrt(-2 ln(s) / s) is normal. Coordinates are multiples of 2^-31.
std::int64_t standard_normal_f32(RandomStream& stream) {
  constexpr std::uint64_t kDisc = std::uint64_t{1} << 62;
  for (;;) {
    const std::int64_t x = static_cast<std::int32_t>(stream.u32());
    const std::int64_t y = static_cast<std::int32_t>(stream.u32());
    const auto x_squared = static_cast<std::uint64_t>(x * x);
    const std::uint64_t s = x_squared + static_cast<std::uint64_t>(y * y);
    if (s == 0 || s >= kDisc) continue;
    const Wide minus_2_ln_f32 = Wide{negative_log2(s << 2)} * kLn2F63 >> 62;
    // The dividend has at most 62 (x_squared) + 39 + 24 bits, so it fits 128. Since x_squared <= s,
    // the quotient is at most minus_2_ln_f32 * 2^24, which fits 64.
    const auto z_squared_f56 = static_cast<std::uint64_t>((x_squared * minus_2_ln_f32 << 24) / s);
    const auto z_f32 = static_cast<std::int64_t>(floor_sqrt(z_squared_f56) << 4);
    return x < 0 ? -z_f32 : z_f32;
  }
}

std::int64_t normal(RandomStream& stream, std::int64_t mean_ns, std::int64_t deviation_ns) {
  check_time(mean_ns < 0 ? -mean_ns : mean_ns);
  check_time(deviation_ns);
  const SignedWide off = SignedWide{deviation_ns} * standard_normal_f32(stream) + kHalfF32;
  return mean_ns + static_cast<std::int64_t>(off >> 32);
}

std::int64_t lognormal(RandomStream& stream, std::int64_t median_ns, std::uint64_t sigma_f32) {
  check_time(median_ns);
  LEEWAY_ASSERT(sigma_f32 <= kLargestFactorF32);
  const auto bits_per_deviation = static_cast<std::int64_t>(Wide{sigma_f32} * kLog2EF32 >> 32);
  const SignedWide exponent = SignedWide{bits_per_deviation} * standard_normal_f32(stream) >> 32;
  return static_cast<std::int64_t>(scale_by_exp2(static_cast<std::uint64_t>(median_ns),
                                                 static_cast<std::int64_t>(exponent), kLongest));
}

}  // namespace leeway::sim
