// Options that ComputeBudget::create refuses, and its error texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "budget_group.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Returns the status of each rank's create().
std::vector<Status> create(int size, const Budgets& options) {
  auto group = Communicator::create_inproc(size);
  EXPECT_TRUE(group.ok());
  std::vector<Status> statuses(size);
  std::vector<std::thread> threads;
  for (auto& communicator : *group) {
    threads.emplace_back([&] {
      const Rank rank = communicator->rank();
      const auto budget = ComputeBudget::create(*communicator, options(rank));
      if (!budget.ok()) statuses[rank] = budget.status();
    });
  }
  for (auto& thread : threads) thread.join();
  return statuses;
}

using Change = std::function<void(ComputeBudgetOptions&)>;

TEST(ComputeBudgetCreate, RefusesWhatIsOutOfRangeAndSaysHowItShouldBe) {
  const struct {
    Change change;
    const char* says;
  } kRefused[] = {
      {[](auto& options) { options.micro_batches = 0; }, "micro_batches is 0"},
      {[](auto& options) { options.micro_batches = 4097; }, "1 .. 4096"},
      {[](auto& options) { options.micro_batches_min = 5; }, "micro_batches_min 5 is more than"},
      {[](auto& options) { options.threshold = -5ms; }, "threshold -5.000 ms is not above zero"},
      {[](auto& options) { options.threshold = 0s; }, "not above zero"},
      {[](auto& options) { options.window_steps = 5; }, "window_steps 5 is outside 6 .. 256"},
      {[](auto& options) { options.window_steps = 257; }, "window_steps 257"},
      {[](auto& options) { options.window_steps = 0; }, "window_steps 0"},
      {[](auto& options) { options.drift_tolerance = -0.1; }, "drift_tolerance -0.1"},
      {[](auto& options) { options.drift_tolerance = std::numeric_limits<double>::quiet_NaN(); },
       "drift_tolerance"},
      {[](auto& options) { options.exchange_deadline = 0s; }, "exchange_deadline 0.000 ms"},
  };
  for (const auto& [change, says] : kRefused) {
    ComputeBudgetOptions options{.micro_batches = 4};
    change(options);
    const Status status = create(1, [&](Rank) { return options; })[0];
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << says;
    EXPECT_THAT(status.c_str(), HasSubstr(says));
    EXPECT_THAT(status.c_str(), HasSubstr("rank 0: ComputeBudget"));
  }
}

TEST(ComputeBudgetCreate, TakesLimits) {
  const Change kTaken[] = {
      [](auto& options) { options.micro_batches_min = 4; },
      [](auto& options) { options.threshold = 1ns; },
      [](auto& options) { options.window_steps = 6; },
      [](auto& options) {
        options.threshold = no_threshold;
        options.window_steps = 0;
      },
      [](auto& options) { options.drift_tolerance = 0; },
  };
  for (const Change& change : kTaken) {
    ComputeBudgetOptions options{.micro_batches = 4};
    change(options);
    EXPECT_TRUE(create(1, [&](Rank) { return options; })[0].ok());
  }
}

TEST(ComputeBudgetCreate, OfRanksThatDifferFailsOnAllAndSaysInWhat) {
  const struct {
    Change change;
    const char* says;
  } kDiffering[] = {
      {[](auto& options) { options.threshold = 1s; }, "threshold"},
      {[](auto& options) { options.warm_up_steps = 7; }, "warm_up_steps is "},
      {[](auto& options) { options.normalisation = Normalisation::fixed_maximum; },
       "normalisation"},
      {[](auto& options) { options.compensation = DropCompensation::requeue; }, "compensation"},
      {[](auto& options) { options.window_steps = 45; }, "from 44 to 45"},
      {[](auto& options) { options.reestimate_steps = 1; }, "reestimate_steps"},
      {[](auto& options) { options.drift_tolerance = 0.11; }, "drift_tolerance"},
  };
  for (const auto& differing : kDiffering) {
    const auto statuses = create(3, [&](Rank rank) {
      ComputeBudgetOptions options{.micro_batches = 4};
      if (rank == 1) differing.change(options);
      return options;
    });
    for (const Status& status : statuses) {
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << differing.says;
      EXPECT_THAT(status.c_str(), HasSubstr(differing.says));
    }
  }
}

TEST(ComputeBudgetCreate, LetsRanksDifferInTheirWork) {
  const auto statuses = create(2, [](Rank rank) {
    return ComputeBudgetOptions{
        .micro_batches = 4u + rank, .threshold = (1 + rank) * 1s, .micro_batches_min = rank};
  });
  EXPECT_TRUE(statuses[0].ok() && statuses[1].ok());
}

TEST(ComputeBudgetCreate, TellsOthersOfARankThatRefuses) {
  const auto statuses = create(
      3, [](Rank rank) { return ComputeBudgetOptions{.micro_batches = rank == 2 ? 0u : 4u}; });
  EXPECT_THAT(statuses[2].c_str(), HasSubstr("micro_batches is 0"));
  for (const Rank rank : {0, 1}) {
    EXPECT_EQ(statuses[rank].code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(statuses[rank].c_str(), HasSubstr("rank 2 refused its options"));
  }
}

}  // namespace
}  // namespace leeway
