// ComputeBudget over in-process transports and hand clocks. When a threshold stops what, and how
// ranks agree on one, is tested without threads in tests/unit/compute.
#include "leeway/compute_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "budget_group.h"
#include "compute/threshold_search.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::uint32_t kMicroBatches = 4;
const std::vector<Duration> kTens(kMicroBatches, 10ms);

// Stops after 25 ms, from the first step on.
ComputeBudgetOptions stops_at_25_ms() {
  return {.micro_batches = kMicroBatches, .threshold = 25ms, .warm_up_steps = 0, .window_steps = 0};
}

TEST(ComputeBudgetNext, StopsAtTheThreshold) {
  on_one_worker(stops_at_25_ms(), [](Worker& worker) {
    EXPECT_EQ(worker.budget->threshold(), 25ms);
    EXPECT_EQ(worker.step(kTens), 3u);
    EXPECT_EQ(worker.step({5ms, 5ms, 5ms, 5ms}), 4u);
    EXPECT_EQ(worker.step(kTens, /*checks=*/true), 2u);
    const ComputeCounts counts = worker.budget->statistics().local;
    EXPECT_EQ(counts.planned, 12u);
    EXPECT_EQ(counts.completed, 9u);
    EXPECT_EQ(counts.dropped, 3u);
    EXPECT_EQ(counts.aborted, 1u);
    EXPECT_TRUE(worker.budget->status().ok());
  });
}

TEST(ComputeBudgetNext, ReadsTheSteadyClockIfNoneIsGiven) {
  auto group = Communicator::create_inproc(1);
  ComputeBudgetOptions options = stops_at_25_ms();
  options.micro_batches = 4096;
  options.threshold = 1ms;
  auto budget = ComputeBudget::create(*(*group)[0], options);
  ASSERT_TRUE(budget.ok());
  const auto start = std::chrono::steady_clock::now();
  while ((*budget)->next_micro_batch()) {  // takes its time
    const auto until = std::chrono::steady_clock::now() + 10us;
    while (std::chrono::steady_clock::now() < until) {
    }
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, 1ms);
  EXPECT_LE((*budget)->completed(), 100u);
}

TEST(ComputeBudgetNext, TakesTheDevicesTimeWhereItIsMore) {
  ComputeBudgetOptions options = stops_at_25_ms();
  double seconds = 0.010;
  int asked = 0;
  options.device_seconds = [&] { return ++asked, seconds; };
  on_one_worker(options, [&](Worker& worker) {
    EXPECT_EQ(worker.step({1ms, 1ms, 1ms, 1ms}), 3u);
    EXPECT_EQ(asked, 3) << "once for each completed micro-batch";
    seconds = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(worker.step({1ms, 1ms, 1ms, 1ms}), 4u);
    EXPECT_EQ(worker.budget->statistics().local.latency_clamps, 4u);
  });
}

TEST(ComputeBudgetNext, CountsAClockThatGoesBack) {
  on_one_worker(stops_at_25_ms(), [](Worker& worker) {
    worker.now = 100ms;
    EXPECT_EQ(worker.step({10ms, -50ms, 10ms, 10ms}), 4u);
    EXPECT_EQ(worker.budget->statistics().local.clock_clamps, 1u);
  });
}

TEST(ComputeBudgetStatus, SaysThatAThresholdIsBelowOneMicroBatch) {
  for (const std::uint32_t floor : {0u, 1u}) {
    ComputeBudgetOptions options = stops_at_25_ms();
    options.micro_batches_min = floor;
    on_one_worker(options, [](Worker& worker) {
      EXPECT_EQ(worker.step({80ms, 80ms, 80ms, 80ms}, /*checks=*/true), 1u);
      EXPECT_EQ(worker.budget->statistics().local.threshold_clamps, 1u);
      const Status status = worker.budget->status();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(status.c_str(), HasSubstr("rank 0"));
      EXPECT_THAT(status.c_str(), HasSubstr("threshold 25.000 ms is below"));
      EXPECT_THAT(status.c_str(), HasSubstr("80.000 ms"));
    });
  }
}

TEST(ComputeBudgetWeight, IsWhatWasCompletedOrPlanned) {
  ComputeBudgetOptions options = stops_at_25_ms();
  for (const Normalisation normalisation :
       {Normalisation::realised_weight, Normalisation::fixed_maximum}) {
    options.normalisation = normalisation;
    on_one_worker(options, [&](Worker& worker) {
      worker.step(kTens);
      const bool realised = normalisation == Normalisation::realised_weight;
      EXPECT_EQ(worker.budget->weight(), realised ? 3.0 : 4.0);
    });
  }
}

struct DataOrder {
  DropCompensation compensation;
  std::uint64_t second_first;    // micro_batch() of the second step's first
  std::uint64_t second_dropped;  // the first it drops
};

TEST(ComputeBudgetMicroBatch, NumbersTheDataAndSaysWhichWereNotUsed) {
  const DataOrder kOrders[] = {{DropCompensation::none, 4, 7},
                               {DropCompensation::extra_steps, 4, 7},
                               {DropCompensation::requeue, 3, 6}};
  for (const DataOrder& order : kOrders) {
    ComputeBudgetOptions options = stops_at_25_ms();
    options.compensation = order.compensation;
    on_one_worker(options, [&](Worker& worker) {
      ComputeBudget& budget = *worker.budget;
      EXPECT_EQ(budget.dropped().count, 0u) << "before the first step";
      EXPECT_EQ(budget.micro_batch(), 0u);
      ASSERT_TRUE(budget.next_micro_batch());
      EXPECT_EQ(budget.micro_batch(), 0u);
      for (worker.now += 10ms; budget.next_micro_batch(); worker.now += 10ms) {
        EXPECT_EQ(budget.micro_batch(), budget.completed());
      }
      EXPECT_EQ(budget.dropped().first, 3u);
      EXPECT_EQ(budget.dropped().count, 1u);
      ASSERT_TRUE(budget.next_micro_batch());
      EXPECT_EQ(budget.micro_batch(), order.second_first);
      worker.now += 10ms;
      ASSERT_TRUE(budget.next_micro_batch());
      EXPECT_EQ(budget.micro_batch(), order.second_first + 1);
      worker.now += 10ms;
      while (budget.next_micro_batch()) worker.now += 10ms;
      EXPECT_EQ(budget.dropped().first, order.second_dropped);
    });
  }
}

// Rank r's micro-batches each take 10 (r + 1) ms, so that ranks drop 1 of 4, 2 and more.
std::vector<Duration> slower_with_rank(const Worker& worker) {
  return std::vector<Duration>(kMicroBatches, 10ms * (worker.rank() + 1));
}

TEST(ComputeBudgetSynchronize, AddsUpAllRanksCounts) {
  on_workers(
      3, [](Rank) { return stops_at_25_ms(); },
      [](Worker& worker) {
        for (int step = 0; step < 5; ++step) worker.step(slower_with_rank(worker));
        EXPECT_EQ(worker.budget->statistics().global.steps, 0u);
        ASSERT_TRUE(worker.budget->synchronize().ok());
        const ComputeCounts global = worker.budget->statistics().global;
        EXPECT_EQ(global.steps, 15u);
        EXPECT_EQ(global.planned, 60u);
        EXPECT_EQ(global.completed, 5 * (3 + 2 + 1u));
        EXPECT_EQ(global.dropped, 30u);
        EXPECT_EQ(global.steps_stopped, 15u);
      });
}

TEST(ComputeBudgetSynchronize, WithinAStepIsRefused) {
  on_one_worker(stops_at_25_ms(), [](Worker& worker) {
    ASSERT_TRUE(worker.budget->next_micro_batch());
    EXPECT_EQ(worker.budget->synchronize().code(), StatusCode::kInvalidArgument);
  });
}

struct ExtraSteps {
  int ranks;
  std::uint64_t steps;
};

TEST(ComputeBudgetStepsDue, MakeUpForWhatWasDropped) {
  constexpr std::uint64_t kPlanned = 10;
  const auto with_extra_steps = [](Rank) {
    ComputeBudgetOptions options = stops_at_25_ms();
    options.compensation = DropCompensation::extra_steps;
    return options;
  };
  // A quarter is dropped, and half.
  for (const ExtraSteps& extra : {ExtraSteps{1, 14}, ExtraSteps{3, 20}}) {
    on_workers(extra.ranks, with_extra_steps, [&](Worker& worker) {
      std::uint64_t steps = 0;
      for (; worker.budget->steps_due(kPlanned) > 0; ++steps) {
        worker.step(slower_with_rank(worker));
        ASSERT_TRUE(worker.budget->synchronize().ok());
      }
      EXPECT_EQ(steps, extra.steps);
      const auto planned = kPlanned * kMicroBatches * static_cast<std::uint64_t>(extra.ranks);
      EXPECT_GE(worker.budget->statistics().global.completed, planned);
    });
  }
}

TEST(ComputeBudgetStepsDue, WithoutCompensationAreThosePlanned) {
  on_one_worker(stops_at_25_ms(), [](Worker& worker) {
    for (std::uint64_t left = 3; left > 0; --left) {
      EXPECT_EQ(worker.budget->steps_due(3), left);
      worker.step(kTens);
      ASSERT_TRUE(worker.budget->synchronize().ok());
    }
    EXPECT_EQ(worker.budget->steps_due(3), 0u);
    EXPECT_EQ(worker.budget->steps_due(2), 0u) << "after more than planned";
  });
}

// Micro-batch b of rank r has the gradient 100 r + b.
TEST(ComputeBudgetReduction, AveragesOverWhatWasCompletedOrOverAll) {
  for (const Normalisation normalisation :
       {Normalisation::realised_weight, Normalisation::fixed_maximum}) {
    const auto options = [&](Rank) {
      ComputeBudgetOptions budget = stops_at_25_ms();
      budget.micro_batches_min = 0;
      budget.normalisation = normalisation;
      return budget;
    };
    on_workers(3, options, [&](Worker& worker) {
      // What was ever short enough may be given up later: rank 2 ends with nothing.
      worker.step({1ms, 1ms, 1ms, 1ms}, /*checks=*/true);
      std::vector<float> gradient(100, 0.0f);
      const Duration latency = worker.rank() == 2 ? 60ms : 10ms;
      while (worker.budget->next_micro_batch()) {
        worker.now += latency;
        if (worker.budget->should_stop()) break;
        const auto value = static_cast<float>(100 * worker.rank() + worker.budget->completed());
        for (float& element : gradient) element += value;
      }
      ASSERT_EQ(worker.budget->completed(), worker.rank() == 2 ? 0u : 2u);
      CollectiveOptions reduction{.op = ReduceOp::avg, .weight = worker.budget->weight()};
      ASSERT_TRUE(worker.communicator.all_reduce(std::span(gradient), reduction).ok());
      const float sum = 0 + 1 + 100 + 101;
      const bool realised = normalisation == Normalisation::realised_weight;
      EXPECT_THAT(gradient, ::testing::Each(sum / (realised ? 4.0f : 12.0f)));
    });
  }
}

// --- automatic ---------------------------------------------------------------------------------

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

// Lognormal latencies, each rank its own, reproducible.
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

// The plain search over all ranks' windows, from the same draws; steps take 5 ms besides.
compute::ThresholdChoice plain_choice(int ranks) {
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
  return compute::best_threshold(all, static_cast<std::uint32_t>(ranks), kManyMicroBatches, wall,
                                 {.steps = kWindow});
}

TEST(ComputeBudgetAutomatic, IsTheSameOnAllRanksAndThatOfThePlainSearch) {
  constexpr int kRanks = 5;
  const compute::ThresholdChoice plain = plain_choice(kRanks);
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

// The threshold of each rank in each of 200 steps, after 80 of which everything takes `scale` times
// as long.
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

// After the first 80 no micro-batch is short enough for the threshold.
TEST(ComputeBudgetAutomatic, LearnsFromStepsThatWereGivenUp) {
  const auto thresholds = thresholds_under_drift(2, 100.0, /*checks=*/true);
  EXPECT_LT(thresholds[0][79], Duration::max());
  EXPECT_GT(thresholds[0].back(), 30 * thresholds[0][79]);
  EXPECT_LT(thresholds[0].back(), Duration::max());
  EXPECT_EQ(thresholds[0], thresholds[1]);
}

// The weights of the reduction between exchanges tell whether collectives stay in order.
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
