// Effect of LateWork on the mean over many rounds of the library's protocol. One rank of four is
// late with probability 0.3, independently in each round. The other ranks' shards then lack its
// contribution. Predictions follow from the ratio rule's weights in each case
// (src/math/estimate/README.md, "Late work").
//
// A late contribution is added to that of the next round, so rounds depend on each other, and
// standard errors come from batches.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "leeway/late_work.h"
#include "sim/group_round.h"
#include "sim/measurement.h"
#include "support/datagram_view.h"

namespace leeway {
namespace {

using collective::OperationKind;
using collective::OperationSpec;
using testing::expect_matches;
using testing::Sample;

constexpr int kRanks = 4;
constexpr Rank kLate = 3;
constexpr double kLateChance = 0.3;
constexpr int kRounds = 20'000;
constexpr int kBatch = 500;
// Rounds after which the descent has converged. The other measurements need no burn-in.
constexpr int kBurnIn = 1'000;
constexpr double kStep = 0.02;      // learning rate of the descent
constexpr double kSlope = 0.01;     // how much the drifting gradient grows in each round
constexpr std::size_t kShard = 64;  // elements: one packet
using PerRank = std::array<double, kRanks>;
constexpr PerRank kUnits = {1, 2, 1, 3};
constexpr PerRank kOptimum = {1, 2, 3, 7};  // a of each rank's loss (x - a)^2 / 2

// Elements in the shard of rank 0. Ranks contribute the following for each unit of work.
constexpr std::size_t kShare = 0;    // 1 from the late rank, 0 from the others
constexpr std::size_t kDrift = 1;    // the same for all ranks, and different in every round
constexpr std::size_t kDescent = 2;  // x - a, the gradient of the rank's loss

// Collects a value from each round, and keeps the means of batches of kBatch rounds.
class Batches {
 public:
  void add(double value) {
    sum_ += value;
    if (++count_ % kBatch != 0) return;
    means.add(sum_ / kBatch);
    sum_ = 0.0;
  }
  Sample means;

 private:
  double sum_ = 0.0;
  int count_ = 0;
};

class Experiment {
 public:
  explicit Experiment(bool carries)
      : carries_(carries), late_work_(kRanks, LateWork(kRanks * kShard)) {
    group_.filter = [this](Rank from, Rank, ByteSpan datagram) {
      if (from != kLate || !late_) return true;
      const auto header = testing::data_header_of(datagram);
      return !header || header->kind != protocol::FlowKind::reduce;
    };
  }

  Batches share;  // weight of the late rank
  Batches error;  // error of the drifting gradient
  Batches where;  // position of the descent

  void run() {
    for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) run_once(round);
  }
  const LateWorkStatistics& statistics() const { return late_work_[kLate].statistics(); }

 private:
  void run_once(int round) {
    late_ = static_cast<double>(random_()) < kLateChance * 0x1p32;
    const double drifting = kSlope * round;
    const auto requests =
        testing::run_round(group_, [&](Rank rank) { return contribute(rank, drifting); });
    for (Rank rank = 0; rank < kRanks && carries_; ++rank)
      late_work_[rank].keep(requests[rank]->report);
    const std::vector<float>& reduced = tensors_[0];
    x_ -= kStep * reduced[kDescent];
    share.add(reduced[kShare]);
    error.add(reduced[kDrift] - drifting);
    if (round >= kBurnIn) where.add(x_);
  }

  OperationSpec contribute(Rank rank, double drifting) {
    const double units = kUnits[rank];
    tensors_[rank].assign(kRanks * kShard, 0.0f);
    tensors_[rank][kShare] = static_cast<float>(rank == kLate ? units : 0.0);
    tensors_[rank][kDrift] = static_cast<float>(units * drifting);
    tensors_[rank][kDescent] = static_cast<float>(units * (x_ - kOptimum[rank]));
    OperationSpec spec{.kind = OperationKind::replica_reduce};
    spec.options = {
        .op = ReduceOp::avg, .delivery = best_effort(std::chrono::seconds(60)), .weight = units};
    if (carries_) {
      EXPECT_TRUE(late_work_[rank].add_to(tensors_[rank], spec.options).ok());
    }
    spec.input = spec.output = std::span(tensors_[rank]);
    return spec;
  }

  bool carries_;
  bool late_ = false;
  double x_ = 0.0;
  std::mt19937 random_{17};
  testing::EngineGroup group_{testing::GroupOptions{.size = kRanks, .datagram_bytes = 512}};
  std::vector<LateWork> late_work_;
  std::array<std::vector<float>, kRanks> tensors_;
};

// Mean weight of the late rank, and the part of it that belongs to stale contributions.
struct Weights {
  double share = 0.0;
  double stale = 0.0;
};
Weights predicted(bool carries) {
  const double all = kUnits[0] + kUnits[1] + kUnits[2] + kUnits[3];
  const double mine = kUnits[kLate];
  const double in_time = 1 - kLateChance;
  if (!carries) return {in_time * mine / all, 0.0};
  // Probability that the late rank is in time, and carries work over from a late round before.
  const double after_late = kLateChance * in_time;
  return {after_late * 2 * mine / (all + mine) + in_time * in_time * mine / all,
          after_late * mine / (all + mine)};
}

// Returns the fixed point of the descent if the late rank has weight `share`, and the others divide
// the remaining weight in proportion to their units.
double predicted_fixed_point(double share) {
  double others = 0.0;
  double units = 0.0;
  for (Rank rank = 0; rank < kLate; ++rank) {
    others += kUnits[rank] * kOptimum[rank];
    units += kUnits[rank];
  }
  return share * kOptimum[kLate] + (1 - share) * others / units;
}

void expect_predicted(bool carries) {
  Experiment experiment(carries);
  experiment.run();
  const Weights weights = predicted(carries);
  testing::print_header(carries ? "with late work" : "without late work");
  expect_matches("weight of the late rank (3/7 if never late)", experiment.share.means,
                 weights.share, 0.005);
  // The prediction takes x and the weights for independent. But both depend on whether the rank was
  // late in earlier rounds, which adds an error of order kStep.
  expect_matches("where the descent is (4.43 if never late)", experiment.where.means,
                 predicted_fixed_point(weights.share), 0.02);
  if (carries) {
    expect_matches("drifting gradient, less itself", experiment.error.means,
                   -kSlope * weights.stale, 1e-4);
    const LateWorkStatistics& statistics = experiment.statistics();
    EXPECT_GT(statistics.missed, 15'000u);
    EXPECT_LE(statistics.missed - statistics.carried, 3u) << "the last round's, at most";
  } else {
    EXPECT_NEAR(experiment.error.means.mean(), 0.0, 1e-5) << "nothing is stale";
  }
}

TEST(LateWorkBias, WithoutItTheLateRankWeighsLess) {
  expect_predicted(false);
}

TEST(LateWorkBias, WithItTheLateRankWeighsMoreAndItsGradientLagsOneRoundBehind) {
  expect_predicted(true);
}

}  // namespace
}  // namespace leeway
