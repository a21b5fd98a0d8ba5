#include "compute/drop_compute.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compute/scaled_time.h"
#include "engine/fixed_point.h"

namespace leeway::sim {
namespace {

constexpr double kMeanLevel = 87.634;  // as the public code has it

// Returns the weight of noise level l, exp(-(ln l - 4)^2 / 2) / l, times 2^60.
constexpr std::uint64_t weight_f60(std::uint64_t level) {
  const std::uint64_t log2_f32 = 64 * kOneF32 - negative_log2(level);
  const auto ln_f32 = static_cast<std::int64_t>(Wide{log2_f32} * kLn2F63 >> 63);
  const std::int64_t off_f32 = ln_f32 - static_cast<std::int64_t>(4 * kOneF32);
  const auto distance_f32 = static_cast<std::uint64_t>(off_f32 < 0 ? -off_f32 : off_f32);
  const auto half_square_f32 = static_cast<std::uint64_t>(Wide{distance_f32} * distance_f32 >> 33);
  const auto bits_f32 = static_cast<std::uint64_t>(Wide{half_square_f32} * kLog2EF32 >> 32);
  return scale_by_exp2(std::uint64_t{1} << 60, -static_cast<std::int64_t>(bits_f32 + log2_f32),
                       UINT64_MAX);
}

constexpr std::array<std::uint64_t, kDropComputeLevels> make_weights() {
  std::array<std::uint64_t, kDropComputeLevels> sums{};
  std::uint64_t sum = 0;
  for (std::uint32_t level = 1; level <= kDropComputeLevels; ++level) {
    sum += weight_f60(level);
    sums[level - 1] = sum;
  }
  return sums;
}

}  // namespace

constexpr std::array<std::uint64_t, kDropComputeLevels> kDropComputeWeights = make_weights();

std::uint32_t drop_compute_level(RandomStream& stream) {
  const std::uint64_t place = stream.below(kDropComputeWeights.back());
  const auto found = std::ranges::upper_bound(kDropComputeWeights, place);
  return static_cast<std::uint32_t>(found - kDropComputeWeights.begin()) + 1;
}

void draw(const DropComputeNoise& noise, RandomStream& stream, std::uint64_t slow_f32,
          std::span<std::int64_t> latencies_ns) {
  const std::int64_t base_ns = scaled_time(noise.micro_batch_ns, slow_f32);
  for (std::int64_t& latency_ns : latencies_ns) {
    const std::uint64_t extra_f32 = drop_compute_level(stream) * noise.unit_f32;
    latency_ns = scaled_time(base_ns, kOneF32 + extra_f32);
  }
}

std::uint64_t drop_compute_unit_f32(double factor) {
  return to_f32(factor * 0.5 / kMeanLevel);
}

DropComputeMoments drop_compute_moments(double factor) {
  double mean = 0;
  double square = 0;
  std::uint64_t below = 0;
  for (std::uint32_t level = 1; level <= kDropComputeLevels; ++level) {
    const std::uint64_t up_to = kDropComputeWeights[level - 1];
    const double share = static_cast<double>(up_to - std::exchange(below, up_to)) /
                         static_cast<double>(kDropComputeWeights.back());
    const double extra = factor * 0.5 * level / kMeanLevel;
    mean += share * extra;
    square += share * extra * extra;
  }
  return {1 + mean, std::sqrt(square - mean * mean)};
}

}  // namespace leeway::sim
