// Tests the weight n/k of a link from which k of n packets arrived, with published check vectors
// for four packets and the table of its mean. All tests go through ScalePlan and are exact over
// every pattern of arrivals.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "estimate/scale_plan.h"
#include "unit/estimate/arrival_patterns.h"

namespace leeway::estimate {
namespace {

using testing::binomial;
using testing::equal_links;
using testing::for_each_pattern;
using testing::Moments;
using testing::Scaled;

// Results of one link of four packets with values 1, 2, 3, 4. The owner adds nothing, so each
// result is that of the link alone.
struct LinkResult {
  std::array<Moments, 4> packets;
  Moments sum;
};

// Adds one pattern of arrivals (bit j = packet j) to `result`.
void add_pattern(LinkResult& result, const ScalePlan& plan, unsigned pattern, double probability) {
  double sum = 0.0;
  for (unsigned packet = 0; packet < 4; ++packet) {
    const std::uint64_t mask = 1 | (pattern >> packet & 1) << 1;
    const double value =
        Scaled(plan, {&mask, 1}, 2, packet).result(std::vector<double>{0.0, packet + 1.0});
    result.packets[packet].add(value, probability);
    sum += value;
  }
  result.sum.add(sum, probability);
}

ScalePlan link_plan(unsigned pattern) {
  return ScalePlan(
      {.estimator = Estimator::horvitz_thompson,
       .op = ReduceOp::sum,
       .links = equal_links(2, 4, static_cast<std::uint32_t>(std::popcount(pattern)))});
}

TEST(RealisedRate, GivesEveryPacketItsValueOverAllPatterns) {
  LinkResult result;
  for (unsigned pattern = 1; pattern < 16; ++pattern) {
    const int k = std::popcount(pattern);
    add_pattern(result, link_plan(pattern), pattern, std::pow(0.8, k) * std::pow(0.2, 4 - k));
  }
  EXPECT_NEAR(result.sum.mass, 0.9984, 1e-12);
  constexpr std::array<double, 4> kVariances = {0.367521, 1.470085, 3.307692, 5.880342};
  for (std::size_t packet = 0; packet < 4; ++packet) {
    EXPECT_NEAR(result.packets[packet].mean(), packet + 1.0, 1e-6);
    EXPECT_NEAR(result.packets[packet].variance(), kVariances[packet], 2e-6);
  }
  EXPECT_NEAR(result.sum.variance(), 2.450142, 2e-6);
}

TEST(RealisedRate, AnEmptyLinkCostsItsShareOfTheMean) {
  LinkResult result;
  for (unsigned pattern = 0; pattern < 16; ++pattern) {
    const int k = std::popcount(pattern);
    add_pattern(result, link_plan(pattern), pattern, std::pow(0.8, k) * std::pow(0.2, 4 - k));
  }
  for (std::size_t packet = 0; packet < 4; ++packet) {
    EXPECT_NEAR(result.packets[packet].mean() - (packet + 1.0), -std::pow(0.2, 4) * (packet + 1.0),
                1e-6);
  }
}

TEST(RealisedRate, KnownRatesSpreadTheSumMore) {
  // Each link has one packet, so its known rate is used.
  auto links = equal_links(5, 1, 1);
  for (LinkTally& link : links) link.heard_rate = 0.8;
  const ScalePlan plan(
      {.estimator = Estimator::horvitz_thompson, .op = ReduceOp::sum, .links = links});
  Moments sum;
  for_each_pattern(std::vector<double>{1, .8, .8, .8, .8}, [&](std::uint64_t mask,
                                                               double probability) {
    sum.add(Scaled(plan, {&mask, 1}, 5).result(std::vector<double>{0, 1, 2, 3, 4}), probability);
  });
  EXPECT_NEAR(sum.mean(), 10.0, 1e-5);
  EXPECT_NEAR(sum.variance(), 7.5, 1e-5);
}

TEST(RealisedRate, AConstantIsSummedExactlyWheneverAnythingArrives) {
  for (unsigned pattern = 1; pattern < 16; ++pattern) {
    const ScalePlan plan = link_plan(pattern);
    double sum = 0.0;
    for (unsigned packet = 0; packet < 4; ++packet) {
      const std::uint64_t mask = 1 | (pattern >> packet & 1) << 1;
      sum += Scaled(plan, {&mask, 1}, 2, packet).scales[1];
    }
    EXPECT_NEAR(sum, 4.0, 1e-6) << "pattern " << pattern;
  }
}

// The link always loses two neighbours in a random sending order. Such losses are dependent but
// exchangeable, which is enough for an unbiased result.
TEST(RealisedRate, ABurstIsHarmlessWhenTheOrderIsRandom) {
  LinkResult result;
  std::array<unsigned, 4> order = {0, 1, 2, 3};
  do {
    for (unsigned start = 0; start < 3; ++start) {
      const unsigned pattern = 0xF & ~(1u << order[start] | 1u << order[start + 1]);
      add_pattern(result, link_plan(pattern), pattern, 1.0 / 72);
    }
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_NEAR(result.sum.mass, 1.0, 1e-12);
  for (std::size_t packet = 0; packet < 4; ++packet) {
    EXPECT_NEAR(result.packets[packet].mean(), packet + 1.0, 1e-6);
  }
}

TEST(RealisedRate, MeanWeightIsThePublishedTable) {
  struct Row {
    double p;
    std::array<double, 6> weights;
    double known, empty_of_four;
  };
  constexpr std::array<std::uint32_t, 6> kPackets = {1, 2, 4, 16, 64, 256};
  constexpr Row kTable[] = {
      {.01, {1, 1.019802, 1.013537, 1.010782, 1.010263, 1.010141}, 1.010101, 1e-8},
      {.1, {1, 1.181818, 1.156616, 1.119476, 1.113078, 1.111596}, 1.111111, 1e-4},
      {.2, {1, 1.333333, 1.367521, 1.271624, 1.255001, 1.251228}, 1.250000, .0016},
      {.4, {1, 1.571429, 1.945813, 1.749230, 1.684696, 1.671047}, 1.666667, .0256},
  };
  const std::uint64_t both = 3;
  const auto weight_of = [&](const std::vector<LinkTally>& links) {
    const ScalePlan plan(
        {.estimator = Estimator::horvitz_thompson, .op = ReduceOp::sum, .links = links});
    return static_cast<double>(Scaled(plan, {&both, 1}, 2).scales[1]);
  };
  for (const Row& row : kTable) {
    for (std::size_t i = 0; i < kPackets.size(); ++i) {
      Moments weight;
      for (std::uint32_t k = 1; k <= kPackets[i]; ++k) {
        weight.add(weight_of(equal_links(2, kPackets[i], k)),
                   binomial(kPackets[i], k, 1.0 - row.p));
      }
      EXPECT_NEAR(weight.mean(), row.weights[i], 1e-6) << "p " << row.p << ", n " << kPackets[i];
      if (kPackets[i] == 4) {
        EXPECT_NEAR(1.0 - weight.mass, row.empty_of_four, 1e-10);
      }
    }
    auto known = equal_links(2, 1, 1);
    known[1].heard_rate = 1.0 - row.p;
    EXPECT_NEAR(weight_of(known), row.known, 1e-6);
  }
}

}  // namespace
}  // namespace leeway::estimate
