// The noise of arXiv 2306.10598's public code: every micro-batch is prolonged by a random share of
// its own time.
//
// A micro-batch of time t lasts t * (1 + factor * 0.5 * l / 87.634). A scenario's drop_compute
// gives the factor. The noise level l is drawn from 1 .. 999 with weight
// exp(-(ln l - 4)^2 / 2) / l. Its mean is 87.634, so the multiplier l / 87.634 has mean 1. The
// multiplier has variance 1.35, and is at most 11.4.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/random_stream.h"

namespace leeway::sim {

inline constexpr std::uint32_t kDropComputeLevels = 999;

// Cumulative weights of the noise levels: element l - 1 is the sum of the weights of 1 .. l, times
// 2^60. They are computed at compile time in integers; each weight has a relative error below 4e-6.
extern const std::array<std::uint64_t, kDropComputeLevels> kDropComputeWeights;

// Draws a noise level in 1 .. 999. Takes two words of the stream, or rarely more.
std::uint32_t drop_compute_level(RandomStream& stream);

struct DropComputeNoise {
  std::int64_t micro_batch_ns = 0;  // without noise
  // Noise level l adds l times this share of a micro-batch's time. The share is stored times 2^32.
  std::uint64_t unit_f32 = 0;
};

// Draws the times of a step's micro-batches, noise included, and multiplies them by `slow_f32` /
// 2^32.
void draw(const DropComputeNoise& noise, RandomStream& stream, std::uint64_t slow_f32,
          std::span<std::int64_t> latencies_ns);

// Returns `unit_f32` for a scenario's `factor`.
std::uint64_t drop_compute_unit_f32(double factor);

// Mean and standard deviation of a micro-batch's time, divided by its time without noise.
struct DropComputeMoments {
  double mean = 1;
  double deviation = 0;
};
DropComputeMoments drop_compute_moments(double factor);

}  // namespace leeway::sim
