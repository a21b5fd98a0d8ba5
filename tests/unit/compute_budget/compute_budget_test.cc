// Tests ComputeBudget over in-process transports and hand clocks. Thresholds and agreement are
// tested without threads in tests/unit/budget.
#include "leeway/compute_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "budget_group.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::uint32_t kMicroBatches = 4;
const std::vector<Duration> kTens(kMicroBatches, 10ms);

// Options that stop each step after 25 ms.
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
  std::uint64_t second_first;    // micro_batch() of the second step's first micro-batch
  std::uint64_t second_dropped;  // the first micro-batch that the second step drops
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

// Each of rank r's micro-batches takes 10 (r + 1) ms, so slower ranks drop more of them.
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
  // Each rank stops after the micro-batch that passes 25 ms, so ranks 0, 1 and 2 complete 3, 2 and
  // 1 of 4. The first case (rank 0 alone) drops a quarter of the micro-batches, the second half.
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

// Micro-batch b of rank r has the gradient 100 r + b. So the average shows which micro-batches are
// in it, and by what their sum was divided.
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
      // The gate gives a step up only if it knows a micro-batch that is shorter than the threshold.
      // This step has such micro-batches, so rank 2 may complete none below.
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

}  // namespace
}  // namespace leeway
