#include "compute/budgeted_compute.h"

#include <gtest/gtest.h>

#include <string>

#include <google/protobuf/text_format.h>

#include "engine/fixed_point.h"
#include "support/time_units.h"

namespace leeway::sim {
namespace {

using testing::kMs;

scenario::Compute::DropCompute options_of(const std::string& text) {
  scenario::Compute::DropCompute options;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &options)) << text;
  return options;
}

// Computes rounds of one rank. Each round begins at the present simulated time.
class Rank {
 public:
  explicit Rank(const std::string& text, std::uint64_t seed = 1)
      : compute_(options_of(text), 1), stream_(seed, 0, Purpose::compute) {}

  ComputeDraw next(std::uint64_t slow_f32 = kOneF32) {
    const ComputeDraw draw = compute_.draw(now_, 0, round_++, stream_, slow_f32);
    now_ += Duration(draw.ns) + std::chrono::milliseconds(5);
    return draw;
  }

 private:
  BudgetedCompute compute_;
  RandomStream stream_;
  Instant now_{77};
  std::uint32_t round_ = 0;
};

// Without noise micro-batches end after 10, 20, 30, ... ms.
const std::string kEven = "micro_batch_ms: 10 factor: 0 ";

TEST(BudgetedCompute, WithoutThresholdComputesEverything) {
  const ComputeDraw draw = Rank("micro_batch_ms: 10").next();
  EXPECT_EQ(draw.micro_batches.completed, 12u);
  EXPECT_EQ(draw.ns, draw.full_ns);
  EXPECT_GE(draw.ns, 120 * kMs);
  EXPECT_EQ(draw.threshold_ns, 0);
}

TEST(BudgetedCompute, BeginsNoMicroBatchOnceTheThresholdHasPassed) {
  const ComputeDraw draw = Rank(kEven + "threshold_ms: 35").next();
  EXPECT_EQ(draw.micro_batches.completed, 4u);
  EXPECT_EQ(draw.micro_batches.planned, 12u);
  EXPECT_EQ(draw.ns, 40 * kMs);
  EXPECT_EQ(draw.full_ns, 120 * kMs);
  EXPECT_EQ(draw.threshold_ns, 35 * kMs);
}

TEST(BudgetedCompute, GivesUpAMicroBatchAfterItsForwardPass) {
  const ComputeDraw given_up = Rank(kEven + "threshold_ms: 32 forward_share: 0.25").next();
  EXPECT_EQ(given_up.micro_batches.completed, 3u);
  EXPECT_EQ(given_up.ns, 32 * kMs + kMs / 2);
  const ComputeDraw ended = Rank(kEven + "threshold_ms: 34 forward_share: 0.25").next();
  EXPECT_EQ(ended.micro_batches.completed, 4u);
  EXPECT_EQ(ended.ns, 40 * kMs);
}

TEST(BudgetedCompute, DropsNothingInTheWarmUpNorBelowTheFloor) {
  Rank warm(kEven + "threshold_ms: 35 warm_up_rounds: 2");
  EXPECT_EQ(warm.next().micro_batches.completed, 12u);
  EXPECT_EQ(warm.next().threshold_ns, 0);
  EXPECT_EQ(warm.next().micro_batches.completed, 4u);
  EXPECT_EQ(Rank(kEven + "threshold_ms: 35 micro_batches_min: 7").next().micro_batches.completed,
            7u);
}

TEST(BudgetedCompute, OfASlowRankDropsMore) {
  const ComputeDraw draw = Rank(kEven + "threshold_ms: 60").next(3 * kOneF32);
  EXPECT_EQ(draw.micro_batches.completed, 2u);
  EXPECT_EQ(draw.ns, 60 * kMs);
}

TEST(BudgetedCompute, DeclaresWhatItCompletedOrTheFixedMaximum) {
  EXPECT_EQ(Rank(kEven + "threshold_ms: 35").next().weight, 4);
  EXPECT_EQ(Rank(kEven + "threshold_ms: 35 normalisation: fixed_maximum").next().weight, 12);
}

TEST(BudgetedCompute, DrawsTheSameTimesWhateverItDrops) {
  Rank all("micro_batch_ms: 10");
  Rank some("micro_batch_ms: 10 threshold_ms: 90 forward_share: 0.5");
  for (int round = 0; round < 5; ++round) EXPECT_EQ(some.next().full_ns, all.next().ns) << round;
}

TEST(BudgetedCompute, FindsAThresholdAfterItsWindow) {
  // 200 ranks wait for the slowest, so one rank that is never stopped hides most of the gain.
  constexpr std::uint32_t kRanks = 200;
  BudgetedCompute compute(options_of("micro_batch_ms: 300 warm_up_rounds: 2 threshold_auto { "
                                     "window_rounds: 10 adopt_after_rounds: 3 }"),
                          kRanks);
  std::vector<RandomStream> streams;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    streams.emplace_back(1, rank, Purpose::compute);
  }
  Instant now;
  std::int64_t threshold_ns = 0;
  for (std::uint32_t round = 0; round < 17; ++round) {
    std::int64_t longest_ns = 0;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      const ComputeDraw draw = compute.draw(now, rank, round, streams[rank], kOneF32);
      longest_ns = std::max(longest_ns, draw.ns);
      EXPECT_EQ(draw.threshold_ns > 0, round >= 15) << round;
      if (threshold_ns == 0) threshold_ns = draw.threshold_ns;
      EXPECT_EQ(draw.threshold_ns, threshold_ns) << "all ranks come to the same";
    }
    now += Duration(longest_ns) + std::chrono::milliseconds(500);
  }
  EXPECT_NEAR(static_cast<double>(threshold_ns), 5000. * kMs, 300. * kMs);
  ASSERT_NE(compute.choice(), nullptr);
  EXPECT_EQ(compute.choice()->threshold.count(), threshold_ns);
}

}  // namespace
}  // namespace leeway::sim
