#include "sim/gpt_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace leeway::tools::simulation {
namespace {

constexpr std::size_t kElements = 40;

std::vector<float> gradient_of(int round, float shift = 0) {
  std::vector<float> gradient(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    gradient[i] = std::sin(static_cast<float>(i) + static_cast<float>(round) * 0.7F) + shift;
  }
  return gradient;
}

// A rank that trains alone, as in `leeway train`.
struct Alone {
  std::vector<float> parameters = std::vector<float>(kElements, 1);
  train::ShardedAdam adam{kElements};
  void step(int round, float shift = 0) { adam.step(parameters, gradient_of(round, shift), 0.1); }
};

TEST(GptOptimizer, EqualRanksShareOneStepWithTheBitsOfTheirOwn) {
  constexpr std::uint32_t kRanks = 5;
  GptOptimizer optimizer(kRanks);
  Alone alone;
  std::vector<std::vector<float>> parameters(kRanks, alone.parameters);
  for (int round = 0; round < 20; ++round) {
    alone.step(round);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      optimizer.step(rank, 0, gradient_of(round), parameters[rank], 0.1);
      ASSERT_EQ(parameters[rank], alone.parameters) << round << ' ' << rank;
    }
  }
  EXPECT_EQ(optimizer.steps_computed(), 20u);
}

TEST(GptOptimizer, ARankWithAnotherGradientGoesItsOwnWay) {
  GptOptimizer optimizer(3);
  std::vector<Alone> alone(3);
  std::vector<std::vector<float>> parameters(3, alone[0].parameters);
  for (int round = 0; round < 20; ++round) {
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const float shift = rank == 1 && round == 7 ? 0.5F : 0;
      alone[rank].step(round, shift);
      optimizer.step(rank, 0, gradient_of(round, shift), parameters[rank], 0.1);
      ASSERT_EQ(parameters[rank], alone[rank].parameters) << round << ' ' << rank;
    }
  }
  EXPECT_EQ(optimizer.steps_computed(), 20u + 13u);
  EXPECT_NE(parameters[0], parameters[1]);
  EXPECT_EQ(parameters[0], parameters[2]);
}

TEST(GptOptimizer, ARankWithOtherParametersGoesItsOwnWay) {
  GptOptimizer optimizer(2);
  std::vector<Alone> alone(2);
  alone[1].parameters[3] = std::nextafter(1.0F, 2.0F);
  std::vector<std::vector<float>> parameters{alone[0].parameters, alone[1].parameters};
  for (int round = 0; round < 5; ++round) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      alone[rank].step(round);
      optimizer.step(rank, 0, gradient_of(round), parameters[rank], 0.1);
      ASSERT_EQ(parameters[rank], alone[rank].parameters) << round << ' ' << rank;
    }
  }
  EXPECT_EQ(optimizer.steps_computed(), 10u);
}

// Ranks with equal gradients and parameters may still differ: only one has error feedback.
TEST(GptOptimizer, AStateOfItsOwnIsNotShared) {
  GptOptimizer optimizer(2);
  std::vector<float> first(kElements, 1), second(kElements, 1);
  optimizer.step(0, 0, gradient_of(0), first, 0.1);
  std::fill(first.begin(), first.end(), 1.0F);
  optimizer.step(0, 0, gradient_of(1), first, 0.1);
  optimizer.step(1, 0, gradient_of(1), second, 0.1);
  EXPECT_NE(first, second);
}

TEST(GptOptimizer, ARankMayBeRoundsBehind) {
  GptOptimizer optimizer(2);
  std::vector<Alone> alone(2);
  std::vector<std::vector<float>> parameters(2, alone[0].parameters);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (int round = 0; round < 12; ++round) {
      alone[rank].step(round);
      optimizer.step(rank, 0, gradient_of(round), parameters[rank], 0.1);
    }
    EXPECT_EQ(parameters[rank], alone[rank].parameters);
  }
}

TEST(GptOptimizer, ShardsOfOwnersMakeTheWholeModelsStep) {
  GptOptimizer optimizer(2);
  Alone alone;
  std::vector<float> parameters = alone.parameters;
  for (int round = 0; round < 10; ++round) {
    alone.step(round);
    const auto gradient = gradient_of(round);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::size_t half = kElements / 2;
      optimizer.step(rank, rank * half, std::span(gradient).subspan(rank * half, half),
                     std::span(parameters).subspan(rank * half, half), 0.1);
    }
    ASSERT_EQ(parameters, alone.parameters) << round;
  }
}

}  // namespace
}  // namespace leeway::tools::simulation
