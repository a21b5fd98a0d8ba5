// Compares runs of every random model with its theory: loss ratio, joint losses, burst lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "link/loss_model.h"
#include "replicas.h"
#include "support/loss_theory.h"

namespace leeway::sim {
namespace {

// Tolerances are kSigmas = 4.6 standard errors: with 40 runs, Student's t for a two-sided 4 sigma.
// That is one false alarm in 16,000 figures. Seeds are fixed, so results do not change.
constexpr std::uint64_t kForgotten = 1000;  // packets until the start no longer matters

// Runs 10^7 packets in all if LEEWAY_SLOW_TESTS is set.
std::uint64_t packets_per_run() {
  return std::getenv("LEEWAY_SLOW_TESTS") != nullptr ? 250'000 : 25'000;
}

struct Case {
  std::string name;
  LossOptions options;
  LossChain chain;

  friend std::ostream& operator<<(std::ostream& out, const Case& tested) {
    return out << tested.name;
  }
};

template <typename Options>
Case make_case(std::string name, const Options& options) {
  return {std::move(name), options, chain_of(options)};
}

std::vector<Case> cases() {
  return {make_case("Rare", RandomLoss{0.003}),
          make_case("Common", RandomLoss{0.3}),
          make_case("SimpleGilbert", GilbertElliott{0.01, 0.3, 1, 0}),
          make_case("Gilbert", GilbertElliott{0.02, 0.1, 0.7, 0}),
          make_case("GilbertElliott", GilbertElliott{0.01, 0.2, 0.8, 0.02}),
          make_case("AlternatingGilbert", GilbertElliott{0.9, 0.8, 0.9, 0.05}),
          make_case("FourState", FourState{0.01, 0.1, 0.2, 0.4, 0.02}),
          make_case("FourStateWithoutBursts", FourState{0, 1, 0, 1, 0.1}),
          make_case("Bursts", BurstLoss{0.1, 8}),
          make_case("ShortBursts", BurstLoss{0.5, 1})};
}

std::vector<char> run(const LossOptions& options, std::uint64_t seed, std::uint64_t packets) {
  LossModel model = LossModel::make({&options, 1}, seed, 7).value();
  for (std::uint64_t i = 0; i < kForgotten; ++i) model.lost(0, 1);
  std::vector<char> lost(packets);
  for (char& fate : lost) fate = model.lost(0, 1) ? 1 : 0;
  return lost;
}

class LossStatistics : public ::testing::TestWithParam<Case> {};

TEST_P(LossStatistics, LoseTheTheoreticalShare) {
  const std::uint64_t packets = packets_per_run();
  double lost = 0;
  for (int seed = 0; seed < kRuns; ++seed) {
    for (const char fate : run(GetParam().options, static_cast<std::uint64_t>(seed), packets)) {
      lost += fate;
    }
  }
  // The tolerance is four standard errors by theory, which includes correlation.
  const double error = std::sqrt(loss_rate_variance(GetParam().chain, packets) / kRuns);
  EXPECT_NEAR(lost / static_cast<double>(packets * kRuns), loss_rate(GetParam().chain), 4 * error);
}

TEST_P(LossStatistics, SpreadBetweenRunsAsTheoryHasIt) {
  const std::uint64_t packets = packets_per_run();
  Replicas rates;
  for (int seed = 0; seed < kRuns; ++seed) {
    double lost = 0;
    for (const char fate : run(GetParam().options, static_cast<std::uint64_t>(seed), packets)) {
      lost += fate;
    }
    rates.add(lost / static_cast<double>(packets));
  }
  // The sample variance over its expectation is chi-squared with 39 degrees of freedom, so its
  // standard error is sqrt(2 / 39) = 0.23. The tolerance is four of these downwards and, for the
  // skew, five upwards.
  const double variance = rates.standard_error() * rates.standard_error() * kRuns;
  const double ratio = variance / loss_rate_variance(GetParam().chain, packets);
  EXPECT_GT(ratio, 1 - 4 * 0.23);
  EXPECT_LT(ratio, 1 + 5 * 0.23);
}

TEST_P(LossStatistics, LoseTogetherAsOftenAsTheoryHasIt) {
  constexpr std::array<std::uint64_t, 6> kLags = {1, 2, 3, 5, 10, 30};
  std::array<Replicas, kLags.size()> together;
  for (int seed = 0; seed < kRuns; ++seed) {
    const auto lost = run(GetParam().options, static_cast<std::uint64_t>(seed), packets_per_run());
    for (std::size_t k = 0; k < kLags.size(); ++k) {
      double pairs = 0;
      for (std::size_t i = kLags[k]; i < lost.size(); ++i) pairs += lost[i] & lost[i - kLags[k]];
      together[k].add(pairs / static_cast<double>(lost.size() - kLags[k]));
    }
  }
  for (std::size_t k = 0; k < kLags.size(); ++k) {
    EXPECT_NEAR(together[k].mean(), joint_loss(GetParam().chain, kLags[k]),
                kSigmas * together[k].standard_error())
        << "lag " << kLags[k];
  }
}

// Counts the bursts that begin and end within the run, by length. The last count has all longer
// ones.
constexpr std::size_t kLengths = 12;
std::array<double, kLengths + 1> burst_lengths(const std::vector<char>& lost) {
  std::array<double, kLengths + 1> counts{};
  std::size_t length = 0;
  bool whole = false;
  for (const char fate : lost) {
    if (fate == 0) {
      if (length > 0 && whole) ++counts[std::min(length, kLengths + 1) - 1];
      whole = true;
      length = 0;
    } else {
      ++length;
    }
  }
  return counts;
}

TEST_P(LossStatistics, HaveBurstsOfTheTheoreticalLengths) {
  std::array<Replicas, kLengths> surplus;
  std::array<double, kLengths> expected{};
  for (int seed = 0; seed < kRuns; ++seed) {
    const auto counts =
        burst_lengths(run(GetParam().options, static_cast<std::uint64_t>(seed), packets_per_run()));
    double bursts = 0;
    for (const double count : counts) bursts += count;
    for (std::size_t i = 0; i < kLengths; ++i) {
      const double share = burst_probability(GetParam().chain, i + 1);
      surplus[i].add(counts[i] - bursts * share);
      expected[i] += bursts * share;
    }
  }
  for (std::size_t i = 0; i < kLengths; ++i) {
    if (expected[i] < 100) continue;  // too few for a normal law
    EXPECT_LE(std::abs(surplus[i].mean()), kSigmas * surplus[i].standard_error())
        << "length " << i + 1;
  }
  EXPECT_GE(expected[0], 100);
}

INSTANTIATE_TEST_SUITE_P(Models, LossStatistics, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

// With rho = 1/2, netem's correlated number is the sum of u_i / 2^i. Its distribution function is
// Fabius': F(1/4) = 5/72, F(1/8) = 1/288.
TEST(CorrelatedLoss, HasTheSharesOfTheFabiusFunction) {
  const std::vector<std::pair<double, double>> points = {
      {0.125, 1.0 / 288}, {0.25, 5.0 / 72}, {0.5, 0.5}, {0.75, 67.0 / 72}};
  for (const auto& [loss, share] : points) {
    Replicas rates;
    for (int seed = 0; seed < kRuns; ++seed) {
      double lost = 0;
      for (const char fate : run(RandomLoss{loss, 0.5}, static_cast<std::uint64_t>(seed), 10'000)) {
        lost += fate;
      }
      rates.add(lost / 10'000);
    }
    EXPECT_NEAR(rates.mean(), share, kSigmas * rates.standard_error()) << "loss " << loss;
  }
}

TEST(CorrelatedUniform, HasCorrelationRhoToTheLag) {
  constexpr double kRho = 0.7;
  constexpr int kDraws = 10'000;
  std::array<Replicas, 3> products;
  for (int seed = 0; seed < kRuns; ++seed) {
    CorrelatedUniform source(RandomStream(static_cast<std::uint64_t>(seed), 0, Purpose::loss),
                             kRho);
    for (std::uint64_t i = 0; i < kForgotten; ++i) source.next();
    std::vector<double> x(kDraws);
    for (double& value : x) value = source.next() / 0x1p32 - 0.5;
    for (std::size_t lag = 0; lag < products.size(); ++lag) {
      double sum = 0;
      for (std::size_t i = lag; i < x.size(); ++i) sum += x[i] * x[i - lag];
      products[lag].add(sum / static_cast<double>(x.size() - lag));
    }
  }
  const double variance = (1 - kRho) / (1 + kRho) / 12;  // variance of the sum of (1 - rho) rho^i u
  for (std::size_t lag = 0; lag < products.size(); ++lag) {
    EXPECT_NEAR(products[lag].mean(), variance * std::pow(kRho, lag),
                kSigmas * products[lag].standard_error());
  }
}

}  // namespace
}  // namespace leeway::sim
