#include "train/sharded_adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace leeway::tools::train {
namespace {

constexpr std::uint64_t kSeed = 20240611;

std::vector<float> noise(std::size_t count, std::mt19937_64& engine) {
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  return values;
}

TEST(ShardedAdamStep, ShardsTogetherEqualTheWholeBitForBit) {
  constexpr std::size_t kCount = 1003;
  constexpr std::size_t kShards = 4;
  std::mt19937_64 engine(kSeed);
  std::vector<float> whole = noise(kCount, engine);
  std::vector<float> sharded = whole;
  ShardedAdam adam(kCount);
  std::vector<ShardedAdam> shards;
  const auto begin_of = [](std::size_t shard) { return shard * kCount / kShards; };
  for (std::size_t s = 0; s < kShards; ++s) shards.emplace_back(begin_of(s + 1) - begin_of(s));

  for (int step = 0; step < 20; ++step) {
    const std::vector<float> gradient = noise(kCount, engine);
    adam.step(whole, gradient, 1e-2);
    for (std::size_t s = 0; s < kShards; ++s) {
      const std::size_t begin = begin_of(s), count = begin_of(s + 1) - begin;
      shards[s].step(std::span(sharded).subspan(begin, count),
                     std::span(gradient).subspan(begin, count), 1e-2);
    }
  }
  EXPECT_EQ(whole, sharded);
}

TEST(ShardedAdamStep, FirstStepMovesByTheLearningRateAgainstTheGradientsSign) {
  // Both moments are corrected for their start, so the first step is rate * g / |g|.
  std::vector<float> parameters{1.0F, 1.0F, 1.0F};
  ShardedAdam adam(3);
  adam.step(parameters, std::vector<float>{2.0F, -3e-3F, 0.0F}, 0.1);
  EXPECT_NEAR(parameters[0], 0.9F, 1e-6);
  EXPECT_NEAR(parameters[1], 1.1F, 1e-6);
  EXPECT_EQ(parameters[2], 1.0F);
}

TEST(ShardedAdamStep, FollowsTheDefinitionInDoublePrecision) {
  const AdamOptions options{.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3};
  ShardedAdam adam(1, options);
  std::vector<float> parameter{0.5F};
  double x = 0.5, m = 0, v = 0;
  for (int step = 1; step <= 10; ++step) {
    const double g = std::sin(step);
    adam.step(parameter, std::vector<float>{static_cast<float>(g)}, 0.05);
    m = 0.8 * m + 0.2 * g;
    v = 0.9 * v + 0.1 * g * g;
    x -= 0.05 * (m / (1 - std::pow(0.8, step))) / (std::sqrt(v / (1 - std::pow(0.9, step))) + 1e-3);
    EXPECT_NEAR(parameter[0], x, 1e-5) << "step " << step;
  }
}

TEST(ShardedAdamStep, MinimisesAParabola) {
  std::vector<float> parameters{3.0F, -2.0F};
  ShardedAdam adam(2);
  constexpr std::uint64_t kSteps = 400;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient{parameters[0] - 1.0F, 4.0F * (parameters[1] - 1.0F)};
    adam.step(parameters, gradient, learning_rate_at(step, kSteps, 0.1));
  }
  EXPECT_NEAR(parameters[0], 1.0F, 1e-3);
  EXPECT_NEAR(parameters[1], 1.0F, 1e-3);
}

TEST(LearningRateAt, WarmsUpOverATenthAndEndsNearZero) {
  constexpr std::uint64_t kSteps = 1000;
  constexpr double kPeak = 0.004;
  EXPECT_NEAR(learning_rate_at(0, kSteps, kPeak), kPeak / 100, 1e-12);
  EXPECT_NEAR(learning_rate_at(99, kSteps, kPeak), kPeak, 1e-12);
  EXPECT_LT(learning_rate_at(kSteps - 1, kSteps, kPeak), 1e-5 * kPeak);
  EXPECT_GT(learning_rate_at(kSteps - 1, kSteps, kPeak), 0.0);
}

TEST(LearningRateAt, NeverRisesAgainAfterTheWarmUp) {
  for (std::uint64_t step = 100; step < 1000; ++step) {
    EXPECT_LE(learning_rate_at(step, 1000, 1.0), learning_rate_at(step - 1, 1000, 1.0))
        << "step " << step;
  }
}

TEST(LearningRateAt, IsPositiveInTheShortestRuns) {
  for (std::uint64_t steps = 1; steps <= 12; ++steps) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      EXPECT_GT(learning_rate_at(step, steps, 1.0), 0.0) << step << " of " << steps;
      EXPECT_LE(learning_rate_at(step, steps, 1.0), 1.0) << step << " of " << steps;
    }
  }
}

TEST(LearningRateAt, FollowsSamplesWhereMoreStepsAreExpected) {
  for (std::uint64_t step = 0; step < 100; ++step)
    EXPECT_EQ(learning_rate_at(step, 100, 100, 0.3), learning_rate_at(step, 100, 0.3));
  // Here two steps have as many samples as one step above.
  for (std::uint64_t step = 0; step < 100; ++step)
    EXPECT_DOUBLE_EQ(learning_rate_at(2 * step + 1, 200, 100, 0.3),
                     learning_rate_at(step, 100, 0.3));
}

}  // namespace
}  // namespace leeway::tools::train
