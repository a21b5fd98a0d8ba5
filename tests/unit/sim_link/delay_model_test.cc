#include "link/delay_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "replicas.h"
#include "support/time_units.h"

namespace leeway::sim {
namespace {

using testing::kMs;

std::vector<std::int64_t> delays(const DelayOptions& options, std::uint64_t seed, int packets) {
  DelayModel model = DelayModel::make(options, seed, 5).value();
  std::vector<std::int64_t> all;
  for (int i = 0; i < packets; ++i) all.push_back(model.arrival(0));
  return all;
}

TEST(DelayModel, AddsAFixedDelay) {
  DelayModel model = DelayModel::make({.delay_ns = 45}, 1, 1).value();
  EXPECT_EQ(model.arrival(0), 45);
  EXPECT_EQ(model.arrival(100), 145);
}

TEST(DelayModel, DelaysNothingUnlessTold) {
  EXPECT_EQ(DelayModel::make({}, 1, 1).value().arrival(7), 7);
}

struct Moments {
  DelayShape shape;
  double mean, deviation;  // of (delay - 50 ms) / 10 ms
};

TEST(DelayModel, HasMeanAndDeviationOfItsShape) {
  const std::vector<Moments> shapes = {{DelayShape::uniform, 0, std::sqrt(1.0 / 3)},
                                       {DelayShape::normal, 0, 1},
                                       {DelayShape::pareto, -0.0329, 0.8209},
                                       {DelayShape::paretonormal, -0.0247, 0.8350}};
  for (const auto& [shape, mean, deviation] : shapes) {
    const DelayOptions options{.shape = shape, .delay_ns = 50 * kMs, .jitter_ns = 10 * kMs};
    Replicas sums, squares;
    for (int seed = 0; seed < kRuns; ++seed) {
      double sum = 0, square = 0;
      for (const std::int64_t delay : delays(options, static_cast<std::uint64_t>(seed), 2000)) {
        const double x = static_cast<double>(delay - 50 * kMs) / (10 * kMs);
        sum += x / 2000;
        square += x * x / 2000;
      }
      sums.add(sum);
      squares.add(square);
    }
    const int number = static_cast<int>(shape);
    EXPECT_NEAR(sums.mean(), mean, kSigmas * sums.standard_error()) << number;
    EXPECT_NEAR(squares.mean(), deviation * deviation + mean * mean,
                kSigmas * squares.standard_error())
        << number;
  }
}

TEST(DelayModel, KeepsUniformJitterWithinItsBounds) {
  const auto all = delays({.delay_ns = 10, .jitter_ns = 3}, 1, 1000);
  const auto [least, greatest] = std::minmax_element(all.begin(), all.end());
  EXPECT_EQ(*least, 7);
  EXPECT_EQ(*greatest, 12);  // as netem: the upper bound itself is not reached
}

TEST(DelayModel, TakesANegativeDelayForNone) {
  const auto all = delays({.shape = DelayShape::normal, .delay_ns = 0, .jitter_ns = 100}, 1, 1000);
  EXPECT_EQ(*std::min_element(all.begin(), all.end()), 0);
  const auto none = std::count(all.begin(), all.end(), 0);
  EXPECT_NEAR(static_cast<double>(none), 500, 4 * std::sqrt(250));
}

TEST(DelayModel, DrawsFromATableOfQuantiles) {
  // A quarter of the delays lies in each of 100..200, 200..1000, 1000..1000 and 1000..5000.
  const DelayOptions options{
      .shape = DelayShape::table, .delay_ns = 7, .values_ns = {100, 200, 1000, 1000, 5000}};
  const auto all = delays(options, 1, 4000);
  const auto share = [&](std::int64_t from, std::int64_t to) {
    return static_cast<double>(
        std::count_if(all.begin(), all.end(), [&](auto d) { return d >= from && d <= to; }));
  };
  const double error = 4 * std::sqrt(4000 * 0.25 * 0.75);
  EXPECT_NEAR(share(107, 206), 1000, error);
  EXPECT_NEAR(share(207, 1006), 1000, error);
  EXPECT_NEAR(share(1007, 1007), 1000, error);
  EXPECT_NEAR(share(1008, 5007), 1000, error);
  EXPECT_EQ(share(107, 5007), 4000);
}

TEST(DelayModel, RepeatsATrace) {
  const DelayOptions options{.shape = DelayShape::trace, .delay_ns = 10, .values_ns = {1, 5, 2}};
  EXPECT_EQ(delays(options, 1, 5), (std::vector<std::int64_t>{11, 15, 12, 11, 15}));
}

TEST(DelayModel, ReordersUnlessToldToKeepTheOrder) {
  DelayOptions options{.shape = DelayShape::trace, .values_ns = {100, 20, 30}};
  DelayModel free = DelayModel::make(options, 1, 1).value();
  options.keep_order = true;
  DelayModel kept = DelayModel::make(options, 1, 1).value();
  EXPECT_EQ(free.arrival(0), 100);
  EXPECT_EQ(free.arrival(10), 30);
  EXPECT_EQ(kept.arrival(0), 100);
  EXPECT_EQ(kept.arrival(10), 100);
  EXPECT_EQ(kept.arrival(90), 120);
}

TEST(DelayModel, CorrelatesNeighboursAsNetemDoes) {
  const DelayOptions options{.delay_ns = 1000, .jitter_ns = 1000, .correlation = 0.5};
  Replicas products;
  for (int seed = 0; seed < kRuns; ++seed) {
    const auto all = delays(options, static_cast<std::uint64_t>(seed), 2000);
    double sum = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
      sum += static_cast<double>((all[i] - 1000) * (all[i - 1] - 1000)) / 1e6;
    }
    products.add(sum / 1999);
  }
  // The covariance is the variance, 4/12 (1 - rho) / (1 + rho) of the squared jitter, times rho.
  // Flooring to whole ns changes it by less than 1e-3.
  EXPECT_NEAR(products.mean(), 1.0 / 9 * 0.5, kSigmas * products.standard_error() + 1e-3);
}

// Recorded runs depend on these values.
TEST(DelayModel, GivesTheSameDelaysOnEveryMachine) {
  const auto of = [](DelayShape shape) {
    return delays({.shape = shape, .delay_ns = 50 * kMs, .jitter_ns = 10 * kMs}, 3, 4);
  };
  EXPECT_EQ(of(DelayShape::uniform),
            (std::vector<std::int64_t>{51284239, 41362250, 42819348, 44839901}));
  EXPECT_EQ(of(DelayShape::normal),
            (std::vector<std::int64_t>{51616564, 35100031, 39240160, 43001003}));
  EXPECT_EQ(of(DelayShape::pareto),
            (std::vector<std::int64_t>{47586508, 43650494, 44026003, 44623327}));
  EXPECT_EQ(of(DelayShape::paretonormal),
            (std::vector<std::int64_t>{48594027, 41512880, 42829542, 44217749}));
}

TEST(DelayModel, KeepsTheLongestDelaysInRange) {
  const DelayOptions options{
      .shape = DelayShape::normal, .delay_ns = kDelayMaxNs, .jitter_ns = kDelayMaxNs};
  for (const std::int64_t delay : delays(options, 1, 1000)) {
    ASSERT_GE(delay, 0);
    ASSERT_LE(delay, 5 * kDelayMaxNs);
  }
}

TEST(CheckDelay, NamesTheParameterItsValueAndItsRange) {
  using enum DelayShape;
  const std::vector<std::pair<DelayOptions, std::string>> refusals = {
      {{.delay_ns = -1}, "delay.delay_ns=-1: expected 0 to 600000000000"},
      {{.jitter_ns = -1}, "delay.jitter_ns=-1: expected 0 to 600000000000"},
      {{.jitter_ns = kDelayMaxNs + 1}, "delay.jitter_ns=600000000001"},
      {{.correlation = 1.5}, "delay.correlation=1.5: a probability lies between 0 and 1"},
      {{.values_ns = {1}}, "delay.values_ns has 1 values: expected 0 to 0"},
      {{.shape = table, .values_ns = {1}}, "delay.values_ns has 1 values: expected 2 to 1048576"},
      {{.shape = trace}, "delay.values_ns has 0 values: expected 1 to 1048576"},
      {{.shape = table, .values_ns = {5, 4}}, "delay.values_ns=4: expected 5 to 600000000000"},
      {{.shape = trace, .values_ns = {5, -4}}, "delay.values_ns=-4: expected 0 to 600000000000"},
      {{.shape = trace, .jitter_ns = 2, .values_ns = {5}}, "delay.jitter_ns=2: expected 0 to 0"}};
  for (const auto& [options, names] : refusals) {
    const Status status = check_delay(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << names;
    EXPECT_NE(std::string(status.text()).find(names), std::string::npos)
        << status.text() << " instead of " << names;
    EXPECT_FALSE(DelayModel::make(options, 0, 0).ok()) << names;
  }
}

}  // namespace
}  // namespace leeway::sim
