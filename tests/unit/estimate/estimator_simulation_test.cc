// Simulates whole operations with random loss, so that the plan sees realised rates and not the
// true ones: 10^4 rounds of 4 ranks and 64 packets a link. Each estimator's mean error must be its
// predicted bias, which is 0 for the unbiased ones, within 3 standard errors. Rounds are
// independent. The seed is fixed.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <utility>

#include "base/philox.h"
#include "estimate/scale_plan.h"
#include "unit/estimate/arrival_patterns.h"

namespace leeway::estimate {
namespace {

using testing::for_each_pattern;
using testing::Scaled;

constexpr std::size_t kRanks = 4;
constexpr std::size_t kPackets = 64;
constexpr int kRounds = 10'000;
using PerRank = std::array<double, kRanks>;

// Returns the contribution of `rank` to `packet`. Ranks differ, and by more in some packets than in
// others. Otherwise the estimator augmented would have no error at all.
double contribution(std::size_t rank, std::size_t packet) {
  return static_cast<double>(rank + 1) * (1.0 + 0.5 * std::sin(static_cast<double>(packet + rank)));
}

struct Scenario {
  const char* name;
  PerRank loss;  // loss for each link into rank 0; 0 for rank 0 itself
  double burst;  // mean burst in packets; 1 = independent
};
void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}
constexpr Scenario kScenarios[] = {
    {"Equal", {0, .1, .1, .1}, 1}, {"Unequal", {0, .1, .1, .5}, 1}, {"Bursty", {0, .1, .1, .1}, 6}};

// Arrivals of one round: a mask per packet, and counts per link.
struct Round {
  std::array<std::uint64_t, kPackets> masks;
  std::vector<LinkTally> links;
};

class Network {
 public:
  explicit Network(const Scenario& scenario) : scenario_(scenario), random_(20251) {}

  Round round() {
    Round round;
    round.masks.fill(1);
    round.links = testing::equal_links(kRanks, kPackets, kPackets);
    for (std::size_t rank = 1; rank < kRanks; ++rank) send(rank, round);
    return round;
  }

 private:
  double uniform() { return to_unit(random_()); }

  // Sends the link's packets in a random order, which decides which of them a burst hits.
  void send(std::size_t rank, Round& round) {
    std::array<std::size_t, kPackets> order;
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = kPackets; i-- > 1;) std::swap(order[i], order[random_() % (i + 1)]);
    const double p = scenario_.loss[rank];
    bool bad = uniform() < p;
    for (const std::size_t packet : order) {
      if (bad) {
        --round.links[rank].arrived;
      } else {
        round.masks[packet] |= std::uint64_t{1} << rank;
      }
      bad = next(bad, p);
    }
  }
  bool next(bool bad, double p) {
    if (scenario_.burst == 1) return uniform() < p;
    return bad ? uniform() >= 1 / scenario_.burst : uniform() < p / (1 - p) / scenario_.burst;
  }

  Scenario scenario_;
  std::mt19937_64 random_;
};

struct Measured {
  double mean = 0.0;
  double standard_error = 0.0;
};

// Returns the mean over rounds of the error against the loss-free average.
Measured mean_error(const Scenario& scenario, Estimator estimator, bool external_control) {
  Network network(scenario);
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < kRounds; ++i) {
    const Round round = network.round();
    const ScalePlan plan({.estimator = estimator,
                          .links = round.links,
                          .external_control = external_control,
                          .seed = 3,
                          .step = static_cast<std::uint32_t>(i)});
    double error = 0.0;
    for (std::size_t packet = 0; packet < kPackets; ++packet) {
      const Scaled scaled(plan, {&round.masks[packet], 1}, kRanks,
                          static_cast<std::uint32_t>(packet));
      PerRank values;
      for (std::size_t rank = 0; rank < kRanks; ++rank) values[rank] = contribution(rank, packet);
      error +=
          scaled.result(values, 2.0) - std::accumulate(values.begin(), values.end(), 0.0) / kRanks;
    }
    error /= kPackets;
    sum += error;
    squares += error * error;
  }
  const double mean = sum / kRounds;
  return {mean, std::sqrt((squares / kRounds - mean * mean) / kRounds)};
}

double mean_contribution(std::size_t rank) {
  double sum = 0.0;
  for (std::size_t packet = 0; packet < kPackets; ++packet) sum += contribution(rank, packet);
  return sum / kPackets;
}

double mean_of_all() {
  double sum = 0.0;
  for (std::size_t rank = 0; rank < kRanks; ++rank) sum += mean_contribution(rank);
  return sum / kRanks;
}

// Returns the bias of an estimator whose expected weight of rank i is weights[i].
double bias_of(const PerRank& weights) {
  double bias = 0.0;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    bias += (weights[rank] - 1.0 / kRanks) * mean_contribution(rank);
  return bias;
}

// Returns the ratio rule's expected weights over all patterns.
PerRank ratio_weights(const Scenario& scenario) {
  PerRank rates;
  for (std::size_t rank = 0; rank < kRanks; ++rank) rates[rank] = 1.0 - scenario.loss[rank];
  PerRank weights{};
  for_each_pattern(rates, [&](std::uint64_t mask, double probability) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      if ((mask >> rank & 1) != 0) weights[rank] += probability / std::popcount(mask);
    }
  });
  return weights;
}

class EstimatorSimulation : public ::testing::TestWithParam<Scenario> {
 protected:
  void expect_bias(Estimator estimator, double wanted, bool external_control = false) const {
    const Measured error = mean_error(GetParam(), estimator, external_control);
    EXPECT_NEAR(error.mean, wanted, 3 * error.standard_error)
        << to_string(estimator) << ", standard error " << error.standard_error;
    EXPECT_LT(error.standard_error, 0.004) << "too few rounds to tell anything";
    EXPECT_GT(error.standard_error, 1e-6) << "no loss, no test";
  }
};
INSTANTIATE_TEST_SUITE_P(Links, EstimatorSimulation, ::testing::ValuesIn(kScenarios),
                         [](const auto& scenario) { return scenario.param.name; });

TEST_P(EstimatorSimulation, HorvitzThompsonIsUnbiased) {
  expect_bias(Estimator::horvitz_thompson, 0.0);
}

TEST_P(EstimatorSimulation, AugmentedIsUnbiasedAroundTheOwnersContribution) {
  expect_bias(Estimator::augmented, 0.0);
}

TEST_P(EstimatorSimulation, AugmentedIsUnbiasedAroundAWrongGuess) {
  expect_bias(Estimator::augmented, 0.0, true);
}

TEST_P(EstimatorSimulation, RatioHasTheBiasOfItsFormula) {
  const double bias = bias_of(ratio_weights(GetParam()));
  EXPECT_LT(bias, -0.04) << "tilted to the owner, whose contribution is the smallest";
  expect_bias(Estimator::ratio, bias);
}

TEST_P(EstimatorSimulation, ZeroFillHasTheBiasOfItsFormula) {
  PerRank weights;
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    weights[rank] = (1.0 - GetParam().loss[rank]) / kRanks;
  expect_bias(Estimator::zero_fill, bias_of(weights));
}

TEST(EstimatorSimulationEqualLinks, SymmetricRatioIsUnbiasedButForEmptyBlocks) {
  const Measured error = mean_error(kScenarios[0], Estimator::symmetric_ratio, false);
  EXPECT_NEAR(error.mean, -std::pow(0.1, 4) * mean_of_all(), 3 * error.standard_error);
  EXPECT_LT(error.standard_error, 0.002) << "the ratio rule's bias would be missed";
}

TEST(EstimatorSimulationEqualLinks, StratifiedIsUnbiasedButForItsFallback) {
  const Measured error = mean_error(kScenarios[0], Estimator::stratified, false);
  EXPECT_NEAR(error.mean, std::pow(0.1, 3) * (mean_contribution(0) - mean_of_all()),
              3 * error.standard_error);
  EXPECT_LT(error.standard_error, 0.002) << "the ratio rule's bias would be missed";
}

}  // namespace
}  // namespace leeway::estimate
