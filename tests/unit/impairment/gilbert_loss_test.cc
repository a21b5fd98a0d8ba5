// Compares statistics of losses with the exact moments of Gilbert's chain. Standard errors take the
// chain's correlation into account. Seeds are fixed, so a failure means changed code; sigmas say
// how unlikely the outcome would have been.
#include "impairment/gilbert_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace leeway::impairment {
namespace {

constexpr std::uint64_t kSeed = 20240607;
constexpr FlowAddress kFlow{.source = 1, .destination = 0, .round = 7};

std::vector<bool> chain(double rate, double burst, std::uint32_t packets, FlowAddress flow = kFlow,
                        std::uint64_t seed = kSeed) {
  GilbertLoss loss(seed, burst);
  std::vector<bool> lost(packets);
  for (std::uint32_t i = 0; i < packets; ++i) lost[i] = loss.lost(flow, i, rate);
  return lost;
}

double mean(const std::vector<bool>& lost) {
  return static_cast<double>(std::count(lost.begin(), lost.end(), true)) /
         static_cast<double>(lost.size());
}

// Returns the lengths of complete runs of `value`.
std::vector<std::uint32_t> runs(const std::vector<bool>& lost, bool value) {
  std::vector<std::uint32_t> lengths;
  std::uint32_t length = 0;
  for (const bool at : lost) {
    if (at == value) {
      ++length;
    } else if (length > 0) {
      lengths.push_back(length);
      length = 0;
    }
  }
  return lengths;
}

double mean(const std::vector<std::uint32_t>& values) {
  double sum = 0.0;
  for (const std::uint32_t value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

struct Parameters {
  double rate;
  double burst;
};

class GilbertLossChain : public testing::TestWithParam<Parameters> {
 protected:
  static constexpr std::uint32_t kPackets = 1'000'000;
  const double rate_ = GetParam().rate;
  const double burst_ = GetParam().burst;
  // The correlation of neighbouring packets: P(bad | bad) - P(bad | good).
  const double hold_ = 1.0 - 1.0 / (burst_ * (1.0 - rate_));
  const std::vector<bool> lost_ = chain(rate_, burst_, kPackets);
};

TEST_P(GilbertLossChain, LosesAtTheStationaryRateWithinThreeSigma) {
  // The variance of the mean, if the correlation at distance k is hold^k.
  const double variance = rate_ * (1.0 - rate_) * (1.0 + hold_) / (1.0 - hold_) / kPackets;
  EXPECT_NEAR(mean(lost_), rate_, 3.0 * std::sqrt(variance));
}

TEST_P(GilbertLossChain, BurstsAreGeometricWithTheAskedMeanWithinThreeSigma) {
  const std::vector<std::uint32_t> bursts = runs(lost_, true);
  const double count = static_cast<double>(bursts.size());
  const double end = 1.0 / burst_;
  EXPECT_NEAR(mean(bursts), burst_, 3.0 * std::sqrt((1.0 - end) / (end * end) / count));
  // Compares the share of each length of burst, up to twice the mean.
  for (std::uint32_t length = 1; length <= 2 * burst_; ++length) {
    const double expected = std::pow(1.0 - end, length - 1) * end;
    const double share =
        static_cast<double>(std::count(bursts.begin(), bursts.end(), length)) / count;
    // Up to 32 lengths in 4 settings are compared, so the tolerance is four sigmas.
    EXPECT_NEAR(share, expected, 4.0 * std::sqrt(expected * (1.0 - expected) / count))
        << "length " << length;
  }
}

TEST_P(GilbertLossChain, GapsBetweenBurstsHaveTheChainsMeanWithinThreeSigma) {
  const std::vector<std::uint32_t> gaps = runs(lost_, false);
  const double start = rate_ / (burst_ * (1.0 - rate_));
  const double sigma =
      std::sqrt((1.0 - start) / (start * start) / static_cast<double>(gaps.size()));
  EXPECT_NEAR(mean(gaps), 1.0 / start, 3.0 * sigma);
}

TEST_P(GilbertLossChain, CorrelationFallsGeometricallyAcrossDistances) {
  const double p = mean(lost_);
  for (const std::uint32_t distance : {1u, 2u, 5u, 64u, 65u}) {
    double sum = 0.0;
    for (std::uint32_t i = 0; i + distance < kPackets; ++i)
      sum += (lost_[i] - p) * (lost_[i + distance] - p);
    const double correlation = sum / (kPackets - distance) / (p * (1.0 - p));
    // This sigma is above that of Bartlett's formula. It comes from the variance of a sum with the
    // chain's correlation time.
    const double sigma =
        std::sqrt((1.0 + hold_ * hold_) / (1.0 - hold_ * hold_) / (rate_ * kPackets));
    EXPECT_NEAR(correlation, std::pow(hold_, distance), 3.0 * sigma) << "distance " << distance;
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, GilbertLossChain,
                         testing::Values(Parameters{0.1, 8.0}, Parameters{0.01, 4.0},
                                         Parameters{0.4, 5.0}, Parameters{0.05, 16.0}),
                         [](const auto& test) {
                           return "Rate" + std::to_string(static_cast<int>(test.param.rate * 100)) +
                                  "Burst" + std::to_string(static_cast<int>(test.param.burst));
                         });

TEST(GilbertLossLost, AnswersDoNotDependOnTheOrderOfQuestions) {
  constexpr std::uint32_t kPackets = 5000;
  const std::vector<bool> in_order = chain(0.2, 8.0, kPackets);
  std::vector<std::uint32_t> order(kPackets);
  for (std::uint32_t i = 0; i < kPackets; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  GilbertLoss loss(kSeed, 8.0);
  for (const std::uint32_t position : order) {
    ASSERT_EQ(loss.lost(kFlow, position, 0.2), in_order[position]) << position;
    ASSERT_EQ(loss.lost(kFlow, position, 0.2), in_order[position]) << "asked again: " << position;
  }
}

TEST(GilbertLossLost, FlowsThatPushEachOtherOutOfTheMemoryKeepTheirAnswers) {
  constexpr std::uint32_t kFlows = 5000;  // more flows than are remembered
  std::vector<std::vector<bool>> alone;
  for (std::uint32_t round = 0; round < kFlows; ++round)
    alone.push_back(chain(0.3, 4.0, 8, {2, 1, round, 0, 0}));
  GilbertLoss loss(kSeed, 4.0);
  for (std::uint32_t position = 0; position < 8; ++position) {
    for (std::uint32_t round = 0; round < kFlows; ++round) {
      ASSERT_EQ(loss.lost({2, 1, round, 0, 0}, position, 0.3), alone[round][position]);
    }
  }
}

TEST(GilbertLossLost, FirstPacketOfAFlowIsLostAtTheStationaryRate) {
  constexpr std::uint32_t kFlows = 100'000;
  GilbertLoss loss(kSeed, 16.0);
  std::uint32_t lost = 0;
  for (std::uint32_t round = 0; round < kFlows; ++round)
    lost += loss.lost({1, 0, round, 1, 0}, 0, 0.1) ? 1 : 0;
  EXPECT_NEAR(lost / double{kFlows}, 0.1, 3.0 * std::sqrt(0.1 * 0.9 / kFlows));
}

TEST(GilbertLossLost, LinksPhasesRoundsAttemptsAndSeedsAreUnrelated) {
  constexpr std::uint32_t kPackets = 20'000;
  const std::vector<bool> base = chain(0.5, 4.0, kPackets);
  const FlowAddress others[] = {{2, 0, 7, 0, 0}, {1, 3, 7, 0, 0}, {0, 1, 7, 0, 0},
                                {1, 0, 8, 0, 0}, {1, 0, 7, 1, 0}, {1, 0, 7, 0, 1}};
  std::vector<std::vector<bool>> chains;
  for (const FlowAddress& flow : others) chains.push_back(chain(0.5, 4.0, kPackets, flow));
  chains.push_back(chain(0.5, 4.0, kPackets, kFlow, kSeed + 1));
  // Two independent chains agree half of the time. At rate 1/2 with bursts of 4 a chain's
  // correlation is 1/2 per step, so that of agreements is 1/4.
  const double sigma = std::sqrt(0.25 * (1.0 + 0.25) / (1.0 - 0.25) / kPackets);
  for (const std::vector<bool>& other : chains) {
    std::uint32_t equal = 0;
    for (std::uint32_t i = 0; i < kPackets; ++i) equal += base[i] == other[i] ? 1 : 0;
    EXPECT_NEAR(equal / double{kPackets}, 0.5, 4.0 * sigma);
  }
}

TEST(GilbertLossLost, ABurstTooShortForItsRateMeansIndependentLosses) {
  // Bursts of 1.5 are too short for this rate: independent losses of one half come in bursts of
  // two.
  const std::vector<bool> lost = chain(0.5, 1.5, 200'000);
  const std::vector<std::uint32_t> bursts = runs(lost, true);
  EXPECT_NEAR(mean(bursts), 2.0, 3.0 * std::sqrt(2.0 / static_cast<double>(bursts.size())));
}

TEST(GilbertLossLost, RateOneLosesEverythingAndRateZeroNothing) {
  EXPECT_EQ(mean(chain(1.0, 8.0, 1000)), 1.0);
  EXPECT_EQ(mean(chain(0.0, 8.0, 1000)), 0.0);
}

}  // namespace
}  // namespace leeway::impairment
