#include "compute/auto_threshold.h"

#include <gtest/gtest.h>

#include <array>

namespace leeway::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kMicroBatches = 3;

// A group in which rank 1's last micro-batch takes four times as long in every step. The forward
// pass is a quarter of a micro-batch.
class Group {
 public:
  explicit Group(const AutoThresholdOptions& options)
      : threshold_(options),
        gates_(options.ranks, budget::StepGate({.micro_batches = kMicroBatches})) {}

  // Makes a step and returns the thresholds in force. Only ranks below `living` take part.
  std::vector<Duration> step(std::uint32_t living = 2, Duration last = 40ms) {
    std::vector<Duration> in_force;
    Duration longest{0};
    for (std::uint32_t rank = 0; rank < living; ++rank) {
      in_force.push_back(threshold_.on_begin(now_, rank, round_));
      budget::StepGate& gate = gates_[rank];
      gate.set_threshold(in_force.back());
      const std::array<Duration, kMicroBatches> latencies{10ms, 10ms, rank == 1 ? last : 10ms};
      Instant time = now_;
      for (std::size_t i = 0; gate.next(time); ++i) {
        const Duration forward = latencies[i] / 4;
        const bool stops = gate.should_stop(time + forward);
        time += stops ? forward : latencies[i];
        if (stops) break;
      }
      threshold_.on_computed(rank, round_, gate);
      longest = std::max(longest, time - now_);
    }
    now_ += longest + 1ms;
    ++round_;
    return in_force;
  }
  std::vector<Duration> steps(std::uint32_t count, std::uint32_t living = 2) {
    std::vector<Duration> of_rank_0;
    for (std::uint32_t i = 0; i < count; ++i) of_rank_0.push_back(step(living)[0]);
    return of_rank_0;
  }
  const budget::ThresholdChoice* choice() const { return threshold_.choice(); }

 private:
  AutoThreshold threshold_;
  std::vector<budget::StepGate> gates_;
  Instant now_{123};
  std::uint32_t round_ = 0;
};

AutoThresholdOptions options(std::uint32_t every = 0) {
  return {.ranks = 2,
          .micro_batches = kMicroBatches,
          .first_round = 1,
          .window_rounds = 4,
          .adopt_after = 2,
          .every_rounds = every};
}

TEST(AutoThreshold, ComesIntoForceSomeRoundsAfterItsWindow) {
  Group group(options());
  const auto thresholds = group.steps(9);
  for (std::size_t round = 0; round < 7; ++round) {
    EXPECT_EQ(thresholds[round], budget::kNoThreshold) << round;
  }
  // This is the least candidate: rank 1 gives up its last micro-batch after the forward pass.
  EXPECT_EQ(thresholds[7], 30ms);
  EXPECT_EQ(thresholds[8], thresholds[7]);
  ASSERT_NE(group.choice(), nullptr);
  EXPECT_NEAR(group.choice()->drop_rate, 1.0 / 6, 1e-9);
  EXPECT_NEAR(group.choice()->time_cut, 30.0 / 61, 1e-9) << "of 60 ms and the 1 ms between rounds";
}

TEST(AutoThreshold, IsNoneWhereNothingIsGained) {
  AutoThresholdOptions one = options();
  one.ranks = 1;
  Group group(one);
  EXPECT_EQ(group.steps(9, 1).back(), budget::kNoThreshold);
  ASSERT_NE(group.choice(), nullptr);
  EXPECT_FALSE(group.choice()->worthwhile());
}

TEST(AutoThreshold, LeavesOutRanksWithoutAWindow) {
  Group group(options());
  group.steps(3);
  EXPECT_EQ(group.steps(6, 1).back(), budget::kNoThreshold) << "rank 0 alone is even";
  EXPECT_FALSE(group.choice()->worthwhile());
}

TEST(AutoThreshold, IsFoundAgain) {
  Group group(options(6));
  group.steps(7);
  // From now on rank 1 is as fast as rank 0, so stopping a rank gains nothing.
  EXPECT_LT(group.step(2, 10ms)[0], budget::kNoThreshold);
  for (int round = 8; round < 13; ++round) group.step(2, 10ms);
  EXPECT_EQ(group.step(2, 10ms)[0], budget::kNoThreshold);
}

}  // namespace
}  // namespace leeway::sim
