// The automatic threshold of ComputeBudget: ranks with different latencies agree on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "budget/threshold_search.h"
#include "budget_group.h"
#include "leeway/compute_budget.h"
#include "support/best_threshold.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kManyMicroBatches = 8;
constexpr std::uint32_t kWindow = 10;
constexpr std::uint64_t kWarmUp = 2;
constexpr std::uint64_t kConclusion = kWarmUp + kWindow + 4;  // the first step with a threshold

ComputeBudgetOptions automatic_options() {
  return {.micro_batches = kManyMicroBatches,
          .warm_up_steps = kWarmUp,
          .window_steps = kWindow,
          .reestimate_steps = 0,
          .drift_tolerance = 0.0};
}

// Reproducible lognormal latencies, different for each rank.
class Latencies {
 public:
  explicit Latencies(Rank rank, double scale = 1.0) : random_(rank), scale_(scale), rank_(rank) {}
  std::vector<Duration> operator()() {
    std::vector<Duration> latencies(kManyMicroBatches);
    for (Duration& latency : latencies) {
      latency = Duration(std::llround(scale_ * (1e7 + 1e6 * rank_) * factor_(random_)));
    }
    return latencies;
  }

 private:
  std::mt19937 random_;
  std::lognormal_distribution<double> factor_{0.0, 0.6};
  double scale_;
  Rank rank_;
};

// Returns what a plain search finds in all ranks' windows, with the same draws as in the test.
// Steps take 5 ms beyond their compute time.
budget::ThresholdChoice plain_choice(int ranks) {
  std::vector<std::int64_t> all;
  Duration wall{0};
  for (int rank = 0; rank < ranks; ++rank) {
    Latencies latencies(static_cast<Rank>(rank));
    for (std::uint64_t step = 0; step < kWarmUp; ++step) latencies();
    Duration own{0};
    for (std::uint32_t step = 0; step < kWindow; ++step) {
      for (const Duration latency : latencies()) {
        all.push_back(latency.count());
        own += latency;
      }
      own += 5ms;
    }
    wall = std::max(wall, own);
  }
  return testing::best_threshold(all, static_cast<std::uint32_t>(ranks), kManyMicroBatches, wall,
                                 {.steps = kWindow, .indifference = budget::kIndifference},
                                 /*stop_share_1024=*/0);
}

TEST(ComputeBudgetAutomatic, IsTheSameOnAllRanksAndThatOfThePlainSearch) {
  constexpr int kRanks = 5;
  const budget::ThresholdChoice plain = plain_choice(kRanks);
  ASSERT_TRUE(plain.worthwhile());
  on_workers(
      kRanks, [](Rank) { return automatic_options(); },
      [&](Worker& worker) {
        Latencies latencies(worker.rank());
        for (std::uint64_t step = 0; step < kConclusion; ++step) {
          EXPECT_EQ(worker.budget->threshold(), Duration::max());
          EXPECT_EQ(worker.step(latencies()), kManyMicroBatches);
          worker.now += 5ms;
        }
        worker.step(latencies());
        EXPECT_EQ(worker.budget->threshold(), plain.threshold);
        const ComputeStatistics statistics = worker.budget->statistics();
        ASSERT_TRUE(statistics.estimate);
        EXPECT_EQ(statistics.estimate->threshold, plain.threshold);
        EXPECT_EQ(statistics.estimate->drop_rate, plain.drop_rate);
        EXPECT_EQ(statistics.estimate->time_cut, plain.time_cut);
        EXPECT_EQ(statistics.estimate->effective_speedup, plain.effective_speedup);
        EXPECT_GT(statistics.estimate->predicted_threshold_s, 0.0);
        EXPECT_EQ(statistics.estimates, 1u);
        EXPECT_EQ(statistics.exchanges, 1u);
        EXPECT_EQ(statistics.exchange_failures, 0u);
        EXPECT_EQ(statistics.global.steps, kRanks * (kConclusion - 2));
      });
}

// Returns each rank's threshold in each of 200 steps. After the first 80 steps, micro-batches take
// `scale` times as long.
std::vector<std::vector<Duration>> thresholds_under_drift(int ranks, double scale, bool checks) {
  const auto options = [&](Rank) {
    ComputeBudgetOptions budget = automatic_options();
    budget.micro_batches_min = checks ? 0 : 1;
    budget.drift_tolerance = 0.5;
    return budget;
  };
  std::vector<std::vector<Duration>> thresholds(static_cast<std::size_t>(ranks));
  on_workers(ranks, options, [&](Worker& worker) {
    Latencies fast(worker.rank()), slow(worker.rank(), scale);
    for (int step = 0; step < 200; ++step) {
      worker.step(step < 80 ? fast() : slow(), checks);
      thresholds[worker.rank()].push_back(worker.budget->threshold());
    }
  });
  return thresholds;
}

TEST(ComputeBudgetAutomatic, FollowsDriftOnAllRanksInTheSameStep) {
  const auto thresholds = thresholds_under_drift(3, 10.0, /*checks=*/false);
  EXPECT_GT(thresholds[0].back(), 5 * thresholds[0][79]);
  EXPECT_EQ(thresholds[0], thresholds[1]);
  EXPECT_EQ(thresholds[0], thresholds[2]);
}

// From step 80 on no micro-batch is short enough, so all steps are given up. The threshold must
// still grow.
TEST(ComputeBudgetAutomatic, LearnsFromStepsThatWereGivenUp) {
  const auto thresholds = thresholds_under_drift(2, 100.0, /*checks=*/true);
  EXPECT_LT(thresholds[0][79], Duration::max());
  EXPECT_GT(thresholds[0].back(), 30 * thresholds[0][79]);
  EXPECT_LT(thresholds[0].back(), Duration::max());
  EXPECT_EQ(thresholds[0], thresholds[1]);
}

// Right averages show that collectives stay in order beside the exchanges.
TEST(ComputeBudgetAutomatic, ExchangesGoBesideTheCallersCollectives) {
  on_workers(
      3, [](Rank) { return automatic_options(); },
      [](Worker& worker) {
        Latencies latencies(worker.rank());
        for (int step = 0; step < 60; ++step) {
          worker.step(latencies());
          std::vector<float> gradient(1000, 3.0f * static_cast<float>(worker.budget->weight()));
          CollectiveOptions options{.op = ReduceOp::avg, .weight = worker.budget->weight()};
          ASSERT_TRUE(worker.communicator.all_reduce(std::span(gradient), options).ok());
          ASSERT_NEAR(gradient[500], 3.0f, 1e-6f);
        }
        EXPECT_GE(worker.budget->statistics().exchanges, 4u);
      });
}

TEST(ComputeBudgetAutomatic, MayEndWithAnExchangeInFlight) {
  for (const std::uint64_t steps : {kConclusion - 3, kConclusion - 1}) {
    on_workers(
        3, [](Rank) { return automatic_options(); },
        [&](Worker& worker) {
          Latencies latencies(worker.rank());
          for (std::uint64_t step = 0; step < steps; ++step) worker.step(latencies());
        });
  }
}

TEST(ComputeBudgetAutomatic, GoesOnWithoutAThresholdIfAPeerStaysAway) {
  const auto options = [](Rank) {
    ComputeBudgetOptions budget = automatic_options();
    budget.exchange_deadline = 50ms;
    return budget;
  };
  on_workers(2, options, [](Worker& worker) {
    Latencies latencies(worker.rank());
    const std::uint64_t steps = worker.rank() == 0 ? 2 * kConclusion : kWarmUp;
    for (std::uint64_t step = 0; step < steps; ++step) worker.step(latencies());
    if (worker.rank() != 0) return;
    EXPECT_EQ(worker.budget->threshold(), Duration::max());
    EXPECT_GT(worker.budget->statistics().exchange_failures, 0u);
    EXPECT_EQ(worker.budget->statistics().exchanges, 0u);
    EXPECT_FALSE(worker.budget->status().ok());
  });
}

}  // namespace
}  // namespace leeway
