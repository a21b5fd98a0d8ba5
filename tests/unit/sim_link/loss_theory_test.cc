#include "support/loss_theory.h"

#include <gtest/gtest.h>

#include <cmath>

namespace leeway::sim {
namespace {

constexpr double kRounding = 1e-9;

TEST(LossRate, OfGilbertElliottWeighsTheStatesLosses) {
  const GilbertElliott options{0.01, 0.2, 0.8, 0.02};
  const double bad = 0.01 / 0.21;
  EXPECT_NEAR(loss_rate(chain_of(options)), bad * 0.8 + (1 - bad) * 0.02, kRounding);
}

// The balance of the four states is solved by hand (Salsano, Ludovici, Ordine).
TEST(LossRate, OfFourStatesSolvesTheBalance) {
  const double p13 = 0.01, p31 = 0.1, p32 = 0.2, p23 = 0.4, p14 = 0.02;
  // Shares relative to state 1. As many packets enter a state as leave it. So the share of state 3
  // is p13 / p31. The share of state 2 is 3's times p32 / p23, and the share of state 4 is p14.
  const double s3 = p13 / p31, s2 = s3 * p32 / p23, s4 = p14;
  EXPECT_NEAR(loss_rate(chain_of(FourState{p13, p31, p32, p23, p14})),
              (s3 + s4) / (1 + s2 + s3 + s4), kRounding);
}

TEST(LossRate, OfBurstsIsWhatWasAskedFor) {
  EXPECT_NEAR(loss_rate(chain_of(BurstLoss{0.1, 8})), 0.1, kRounding);
  EXPECT_NEAR(loss_rate(chain_of(BurstLoss{1, 8})), 1, kRounding);
}

TEST(LossRate, OfAChainThatNeverLeavesItsStartIsTheStartsLoss) {
  EXPECT_NEAR(loss_rate(chain_of(GilbertElliott{0, 0, 1, 0.25})), 0.25, kRounding);
}

TEST(LossRate, OfAChainWithoutReturnIsTheEndsLoss) {
  EXPECT_NEAR(loss_rate(chain_of(GilbertElliott{0.001, 0, 1, 0})), 1, kRounding);
}

TEST(Autocorrelation, OfGilbertElliottFallsByOneMinusPMinusR) {
  const LossChain chain = chain_of(GilbertElliott{0.01, 0.2, 0.8, 0.02});
  const double bad = 0.01 / 0.21;
  const double rate = loss_rate(chain);
  const double first = bad * (1 - bad) * (0.8 - 0.02) * (0.8 - 0.02) / (rate * (1 - rate));
  EXPECT_NEAR(autocorrelation(chain, 0), 1, kRounding);
  EXPECT_NEAR(autocorrelation(chain, 1), first * 0.79, kRounding);
  EXPECT_NEAR(autocorrelation(chain, 7), first * std::pow(0.79, 7), kRounding);
}

TEST(Autocorrelation, OfIndependentLossesIsZero) {
  EXPECT_NEAR(autocorrelation(chain_of(RandomLoss{0.3}), 1), 0, kRounding);
  EXPECT_NEAR(autocorrelation(chain_of(BurstLoss{0.3, 1}), 1), 0, kRounding);
}

TEST(MeanBurst, IsWhatWasAskedFor) {
  EXPECT_NEAR(mean_burst(chain_of(BurstLoss{0.1, 8})), 8, kRounding);
  EXPECT_NEAR(mean_burst(chain_of(GilbertElliott{0.02, 0.25, 1, 0})), 4, kRounding);
  EXPECT_NEAR(mean_burst(chain_of(RandomLoss{0.5})), 2, kRounding);
}

TEST(BurstProbability, OfASimpleGilbertChainIsGeometric) {
  const LossChain chain = chain_of(GilbertElliott{0.02, 0.25, 1, 0});
  for (const std::uint64_t length : {1u, 2u, 5u}) {
    EXPECT_NEAR(burst_probability(chain, length),
                0.25 * std::pow(0.75, static_cast<double>(length) - 1), kRounding);
  }
}

TEST(BurstProbability, HasTheMeanOfMeanBurst) {
  const LossChain chain = chain_of(FourState{0.01, 0.1, 0.2, 0.4, 0.02});
  double mean = 0;
  for (std::uint64_t length = 1; length < 200; ++length) {
    mean += static_cast<double>(length) * burst_probability(chain, length);
  }
  EXPECT_NEAR(mean, mean_burst(chain), 1e-7);
}

TEST(LossRateVariance, OfIndependentLossesIsBinomial) {
  EXPECT_NEAR(loss_rate_variance(chain_of(RandomLoss{0.2}), 1000), 0.2 * 0.8 / 1000, 1e-12);
}

TEST(LossRateVariance, OfACorrelatedPairIsCountedByHand) {
  const LossChain chain = chain_of(GilbertElliott{0.02, 0.25, 1, 0});
  const double rate = loss_rate(chain);
  // The variance of a mean of two values is half of one value's, plus half of the covariance.
  EXPECT_NEAR(loss_rate_variance(chain, 2), rate * (1 - rate) * (1 + autocorrelation(chain, 1)) / 2,
              1e-12);
}

}  // namespace
}  // namespace leeway::sim
