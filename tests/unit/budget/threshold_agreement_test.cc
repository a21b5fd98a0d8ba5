#include "budget/threshold_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>

#include "step_runner.h"
#include "support/best_threshold.h"

namespace leeway::budget {
namespace {

using Stage = ThresholdAgreement::Stage;

constexpr std::uint32_t kRanks = 5;
constexpr std::uint32_t kMicroBatches = 8;
constexpr std::uint32_t kWindow = 12;
constexpr std::uint64_t kWarmUp = 3;
constexpr std::uint64_t kFirstConclusion =
    kWarmUp + kWindow + 2 * ThresholdAgreement::kExchangeSteps;

AgreementOptions usual_options() {
  return {.ranks = kRanks,
          .micro_batches = kMicroBatches,
          .warm_up_steps = kWarmUp,
          .window_steps = kWindow,
          .reestimate_steps = 0,
          .drift_tolerance = 0.0};
}

// Ranks that take steps together and exchange values as in an all-reduce. Each rank keeps the
// latencies of all its steps, for best_of_window().
class Group {
 public:
  using Latency = std::function<std::int64_t(std::uint32_t rank)>;

  explicit Group(const AgreementOptions& options = usual_options()) {
    for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
      members_.push_back(std::make_unique<Member>(options));
    }
  }

  // Lets the exchange of `stage` fail on these ranks, until mend().
  void fail(Stage stage, std::vector<std::uint32_t> ranks) {
    failing_stage_ = stage;
    failing_ = std::move(ranks);
  }
  void mend() { failing_.clear(); }

  void step(const Latency& latency) {
    const Stage due = members_[0]->agreement.due(step_);
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      Member& member = *members_[rank];
      ASSERT_EQ(member.agreement.due(step_), due);
      if (due == Stage::tables)
        member.agreement.make_tables(member.gate.counts(), ok(Stage::bounds, rank));
      if (due == Stage::conclusion) member.agreement.conclude(step_, ok(Stage::tables, rank));
      member.gate.set_threshold(member.agreement.threshold());
    }
    Instant latest{};
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      Member& member = *members_[rank];
      std::vector<std::int64_t> ns(kMicroBatches);
      for (std::int64_t& each : ns) each = latency(rank);
      member.history.insert(member.history.end(), ns.begin(), ns.end());
      member.step(ns, step_);
      latest = std::max(latest, member.runner.now);
    }
    for (auto& member : members_) member->runner.now = latest + Duration(5 * kMs);
    if (due == Stage::bounds)
      combine([](ThresholdAgreement& each) { return each.bounds(); }, larger);
    if (due == Stage::tables) {
      combine([](ThresholdAgreement& each) { return each.cuts(); }, larger);
      combine([](ThresholdAgreement& each) { return each.sums(); }, std::plus<>());
      combine([](ThresholdAgreement& each) { return each.totals(); }, std::plus<>());
    }
    ++step_;
  }
  void steps_until(std::uint64_t step, const Latency& latency) {
    while (step_ < step) this->step(latency);
  }

  ThresholdAgreement& agreement(std::uint32_t rank) { return members_[rank]->agreement; }
  const StepGate& gate(std::uint32_t rank) { return members_[rank]->gate; }
  Duration threshold() {
    for (auto& member : members_)
      EXPECT_EQ(member->agreement.threshold(), agreement(0).threshold());
    return agreement(0).threshold();
  }

  // Returns the best threshold for the whole latencies of all ranks, as if no step had been cut
  // off, in the window that begins at step `first`.
  ThresholdChoice best_of_window(std::uint64_t first) {
    std::vector<std::int64_t> all;
    for (auto& member : members_) {
      const auto begin =
          member->history.begin() + static_cast<std::ptrdiff_t>(first * kMicroBatches);
      all.insert(all.end(), begin, begin + kWindow * kMicroBatches);
    }
    const Duration wall = members_[0]->starts[first + kWindow] - members_[0]->starts[first];
    return testing::best_threshold(all, kRanks, kMicroBatches, wall,
                                   {.steps = kWindow, .indifference = kIndifference},
                                   /*stop_share_1024=*/0);
  }

 private:
  struct Member {
    explicit Member(const AgreementOptions& options)
        : gate({.micro_batches = kMicroBatches,
                .micro_batches_min = options.micro_batches_min,
                .warm_up_steps = options.warm_up_steps}),
          agreement(options) {}

    void step(std::span<const std::int64_t> ns, std::uint64_t number) {
      gate.next(runner.now);
      agreement.begin_step(number, gate.step_start());
      starts.push_back(gate.step_start());
      for (std::size_t i = 0; gate.in_step(); ++i) {
        const std::int64_t forward = ns[i] / 2;
        runner.now += Duration(forward);
        if (gate.options().micro_batches_min == 0 && gate.should_stop(runner.now)) break;
        runner.now += Duration(ns[i] - forward);
        gate.next(runner.now);
      }
      agreement.end_step(gate);
    }

    StepGate gate;
    ThresholdAgreement agreement;
    StepRunner runner{gate};
    std::vector<std::int64_t> history;
    std::vector<Instant> starts;
  };

  static std::int64_t larger(std::int64_t a, std::int64_t b) { return std::max(a, b); }

  bool ok(Stage stage, std::uint32_t rank) const {
    return stage != failing_stage_ || std::ranges::find(failing_, rank) == failing_.end();
  }

  template <typename Part, typename Operation>
  void combine(Part&& part, Operation&& operation) {
    for (std::size_t i = 0; i < part(agreement(0)).size(); ++i) {
      auto value = part(agreement(0))[i];
      for (std::uint32_t rank = 1; rank < members_.size(); ++rank)
        value = operation(value, part(agreement(rank))[i]);
      for (auto& member : members_) part(member->agreement)[i] = value;
    }
  }

  std::vector<std::unique_ptr<Member>> members_;
  std::uint64_t step_ = 0;
  Stage failing_stage_ = Stage::none;
  std::vector<std::uint32_t> failing_;
};

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Lognormal latencies, longer on the higher ranks.
class Noise {
 public:
  explicit Noise(double scale = 1.0, unsigned seed = 1) : scale_(scale), random_(seed) {}
  std::int64_t operator()(std::uint32_t rank) {
    return std::llround(scale_ * (10.0 + rank) * kMs * factor_(random_));
  }

 private:
  double scale_;
  std::mt19937 random_;
  std::lognormal_distribution<double> factor_{0.0, 0.6};
};

TEST(ThresholdAgreement, IsThePlainSearchOverAllRanksLatencies) {
  Group group;
  Noise noise;
  group.steps_until(kFirstConclusion, std::ref(noise));
  EXPECT_EQ(group.threshold(), kNoThreshold);
  group.step(std::ref(noise));
  const ThresholdChoice plain = group.best_of_window(kWarmUp);
  ASSERT_TRUE(plain.worthwhile());
  EXPECT_EQ(group.threshold(), plain.threshold);
  const auto estimate = group.agreement(4).estimate();
  ASSERT_TRUE(estimate);
  EXPECT_EQ(estimate->threshold, plain.threshold);
  EXPECT_EQ(estimate->drop_rate, plain.drop_rate);
  EXPECT_EQ(estimate->effective_speedup, plain.effective_speedup);
  EXPECT_NEAR(estimate->overhead_s, 0.005, 1e-9);
}

TEST(ThresholdAgreement, IsInForceFromTheConclusionOn) {
  Group group;
  Noise noise;
  group.steps_until(kFirstConclusion, std::ref(noise));
  EXPECT_EQ(group.gate(0).counts().dropped, 0u);
  group.steps_until(kFirstConclusion + 30, std::ref(noise));
  EXPECT_GT(group.gate(0).counts().dropped + group.gate(4).counts().dropped, 0u);
  EXPECT_EQ(group.agreement(0).estimates(), 1u);
}

TEST(ThresholdAgreement, OfLatenciesThatDoNotVaryIsNone) {
  Group group;
  group.steps_until(kFirstConclusion + 1, [](std::uint32_t) { return 10 * kMs; });
  EXPECT_EQ(group.threshold(), kNoThreshold);
  EXPECT_EQ(group.agreement(0).estimates(), 1u);
  EXPECT_LE(group.agreement(0).estimate()->effective_speedup, 0.0);
}

TEST(ThresholdAgreementEstimate, SaysWhatTheModelPredicts) {
  Group group;
  std::mt19937 random(4);
  std::normal_distribution<double> ms(20.0, 4.0);
  group.steps_until(kFirstConclusion + 1,
                    [&](std::uint32_t) { return std::llround(ms(random) * kMs); });
  const auto estimate = group.agreement(0).estimate();
  ASSERT_TRUE(estimate);
  EXPECT_NEAR(estimate->micro_batch_mean_s, .020, 4 * .004 / std::sqrt(480.0));
  EXPECT_NEAR(estimate->micro_batch_deviation_s, .004, 4 * .004 / std::sqrt(960.0));
  EXPECT_GT(estimate->predicted_threshold_s, 0.1);
  EXPECT_LT(estimate->predicted_threshold_s, 0.2);
  EXPECT_GT(estimate->predicted_effective_speedup, 0.0);
}

TEST(ThresholdAgreementDue, FollowsTheWindows) {
  const ThresholdAgreement agreement(usual_options());
  for (std::uint64_t step = 0; step < kWarmUp + 5 * kWindow; ++step) {
    const std::uint64_t place = (step + kWindow - kWarmUp) % kWindow;
    Stage due = place == 0 ? Stage::bounds : place == 2 ? Stage::tables : Stage::none;
    if (place == 4) due = Stage::conclusion;
    EXPECT_EQ(agreement.due(step), step < kWarmUp + kWindow ? Stage::none : due) << step;
  }
}

TEST(ThresholdAgreement, TakesNothingFromAWindowWithTwoThresholds) {
  AgreementOptions options = usual_options();
  options.reestimate_steps = 1;
  Group group(options);
  Noise noise;
  group.steps_until(kFirstConclusion + 2 * kWindow, std::ref(noise));
  EXPECT_EQ(group.agreement(0).estimates(), 1u);
  group.step(std::ref(noise));
  EXPECT_EQ(group.agreement(0).estimates(), 2u);
}

// Latencies become a hundred times as long as those that gave the threshold, so no micro-batch ends
// in time.
TEST(ThresholdAgreement, IsGivenUpWhereItLeavesNothing) {
  AgreementOptions options = usual_options();
  options.ranks = 2;
  options.micro_batches_min = 0;
  Group group(options);
  Noise noise, endless(100.0);
  group.steps_until(kFirstConclusion + 1, std::ref(noise));
  ASSERT_NE(group.threshold(), kNoThreshold);
  group.steps_until(kFirstConclusion + 2 * kWindow, std::ref(endless));
  EXPECT_EQ(group.gate(0).completed(), 0u);
  group.step(std::ref(endless));
  EXPECT_EQ(group.threshold(), kNoThreshold);
  EXPECT_FALSE(group.agreement(0).estimate());
  group.steps_until(kFirstConclusion + 4 * kWindow + 1, std::ref(endless));
  EXPECT_NE(group.threshold(), kNoThreshold) << "there are latencies again";
}

TEST(ThresholdAgreement, IsReestimatedAfterTheStepsAskedFor) {
  AgreementOptions options = usual_options();
  options.reestimate_steps = 3 * kWindow;
  Group group(options);
  Noise noise;
  group.steps_until(kFirstConclusion + 3 * kWindow, std::ref(noise));
  EXPECT_EQ(group.agreement(0).estimates(), 1u);
  group.step(std::ref(noise));
  EXPECT_EQ(group.agreement(0).estimates(), 2u);
  EXPECT_NE(group.threshold(), kNoThreshold);
  EXPECT_EQ(group.agreement(0).drifts(), 0u);
}

TEST(ThresholdAgreement, FollowsLatenciesThatDrift) {
  AgreementOptions options = usual_options();
  options.drift_tolerance = 0.25;
  Group group(options);
  Noise noise, slower(1.4);
  group.steps_until(kFirstConclusion + 6 * kWindow, std::ref(noise));
  EXPECT_EQ(group.agreement(0).estimates(), 1u) << "nothing has drifted";
  const Duration before = group.threshold();
  group.steps_until(kFirstConclusion + 12 * kWindow, std::ref(slower));
  EXPECT_GE(group.agreement(0).drifts(), 1u);
  EXPECT_EQ(group.agreement(0).estimates(), 1 + group.agreement(0).drifts());
  EXPECT_GT(seconds(group.threshold()) / seconds(before), 1.1);
}

// Steps of one group are never cut off. In the other group a threshold is always in force. Both
// must find the same threshold on average; otherwise a threshold would drift by its own effect.
TEST(ThresholdAgreement, StaysWhereItIsUnderItsOwnInfluence) {
  constexpr int kEstimates = 100;
  AgreementOptions whole = usual_options(), cut = usual_options();
  whole.automatic = false;
  cut.reestimate_steps = 1;
  Group undisturbed(whole), disturbed(cut);
  Noise noise(1.0, 1), other_noise(1.0, 2);
  disturbed.steps_until(kFirstConclusion + 1, std::ref(noise));
  double mean = 0, mean_under_threshold = 0;
  for (int i = 1; i <= kEstimates; ++i) {
    undisturbed.steps_until(kWarmUp + i * kWindow + 1, std::ref(other_noise));
    mean += seconds(undisturbed.best_of_window(kWarmUp + (i - 1) * kWindow).threshold) / kEstimates;
    disturbed.steps_until(kFirstConclusion + 1 + i * 2 * kWindow, std::ref(noise));
    mean_under_threshold += seconds(disturbed.threshold()) / kEstimates;
  }
  EXPECT_GE(disturbed.agreement(0).estimates(), kEstimates);
  EXPECT_NEAR(mean_under_threshold / mean, 1.0, 0.05);
}

TEST(ThresholdAgreement, OfFailedBoundsIsDrawnByNobody) {
  Group group;
  Noise noise;
  group.fail(Stage::bounds, {2});
  group.steps_until(kFirstConclusion + 1, std::ref(noise));
  EXPECT_EQ(group.threshold(), kNoThreshold);
  group.mend();
  group.steps_until(kFirstConclusion + kWindow + 1, std::ref(noise));
  EXPECT_EQ(group.threshold(), group.best_of_window(kWarmUp + kWindow).threshold);
}

TEST(ThresholdAgreement, IsRestoredAfterARankMissedAConclusion) {
  Group group;
  Noise noise;
  group.fail(Stage::tables, {1, 3});
  group.steps_until(kFirstConclusion + 1, std::ref(noise));
  EXPECT_EQ(group.agreement(1).threshold(), kNoThreshold);
  EXPECT_NE(group.agreement(0).threshold(), kNoThreshold);
  group.mend();
  group.steps_until(kFirstConclusion + 2 * kWindow + 1, std::ref(noise));
  EXPECT_NE(group.threshold(), kNoThreshold);  // and all agree
  EXPECT_EQ(group.agreement(0).estimates(), 2u);
  EXPECT_EQ(group.agreement(1).estimates(), 1u);
  group.steps_until(kFirstConclusion + 6 * kWindow, std::ref(noise));
  EXPECT_EQ(group.agreement(0).estimates(), 2u);
}

TEST(ThresholdAgreementGlobal, AddsUpTheCountsOfAllRanks) {
  Group group;
  Noise noise;
  group.steps_until(kFirstConclusion + 3 * kWindow + 1, std::ref(noise));
  const std::uint64_t counted_at =
      kFirstConclusion + 3 * kWindow - ThresholdAgreement::kExchangeSteps;
  const ComputeCounts& global = group.agreement(3).global();
  EXPECT_EQ(global.steps, kRanks * counted_at);
  EXPECT_EQ(global.planned, kRanks * kMicroBatches * counted_at);
  EXPECT_EQ(global.completed + global.dropped, global.planned);
  EXPECT_GT(global.dropped, 0u);
  EXPECT_GT(global.steps_stopped, 0u);
}

TEST(ThresholdAgreementGlobal, IsAllThatIsExchangedWithoutAutomaticThreshold) {
  AgreementOptions options = usual_options();
  options.automatic = false;
  Group group(options);
  Noise noise;
  for (std::uint64_t step = 0; step < 10 * kWindow; ++step) {
    EXPECT_NE(group.agreement(0).due(step), Stage::bounds);
  }
  group.steps_until(kFirstConclusion + 1, std::ref(noise));
  EXPECT_EQ(group.agreement(0).global().steps,
            kRanks * (kFirstConclusion - ThresholdAgreement::kExchangeSteps));
  EXPECT_FALSE(group.agreement(0).estimate());
}

TEST(ThresholdAgreementCounts, SurviveARow) {
  const ComputeCounts counts{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto row = ThresholdAgreement::row_of(counts);
  EXPECT_THAT(row, ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(ThresholdAgreement::row_of(ThresholdAgreement::counts_of(row)), row);
}

}  // namespace
}  // namespace leeway::budget
