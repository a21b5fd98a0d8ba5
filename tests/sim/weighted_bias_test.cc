// Averages per unit of work, if ranks finish random amounts of work and links lose packets
// unequally: 10^4 rounds of four ranks over the library's protocol. In every round each rank plans
// some micro-batches of one or two samples, drops some or all of them, and contributes the sum over
// the samples that it finished.
//
// Statements (src/math/estimate/README.md, "Weights"), within 3 standard errors, with fixed seeds;
// G is a rank's sum, c its number of samples:
//   * horvitz_thompson and augmented are unbiased for sum G / sum c of the round, on any links and
//     for any weights;
//   * ratio and stratified are unbiased for a gradient that all ranks share, on any links, unless
//     nothing with units arrives;
//   * ratio and stratified for ranks that differ, and zero_fill always, are tilted as their
//     expected shares predict;
//   * symmetric_ratio gives equal shares on equal links, for ranks that finish alike;
//   * with planned instead of finished weights, results are smaller by the drop rate, on any links.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.h"
#include "sim/group_round.h"
#include "sim/measurement.h"
#include "support/seeds.h"

namespace leeway {
namespace {

using collective::OperationKind;
using collective::OperationSpec;
using testing::expect_matches;
using testing::Sample;

constexpr int kRanks = 4;
constexpr int kRounds = testing::seeds(3'000, 10'000);
constexpr std::size_t kPackets = 8;  // packets of each shard
constexpr std::size_t kDatagramBytes = 512;
constexpr int kMicroBatches = 4;
constexpr int kSamplesMax = 2 * kMicroBatches;
constexpr double kNothing = 0.1;  // chance that a rank drops all of a round
constexpr double kCommon = 1.5;   // the gradient per sample that ranks have in common
using PerRank = std::array<double, kRanks>;

constexpr std::size_t kDiffering = 0;  // element that holds the gradient of ranks that differ
constexpr std::size_t kShared = 1;     // element that holds the gradient that ranks have in common
// Element to which ranks contribute their numbers of samples: 0 if no sample arrived.
constexpr std::size_t kUnits = 2;

struct Setting {
  Estimator estimator = Estimator::ratio;
  PerRank loss = {0, .1, .2, .4};   // loss of packets, by source
  PerRank drop = {.1, .2, .4, .3};  // share of micro-batches, by rank
  bool fixed_maximum = false;       // weights are the planned samples, not the finished ones
  OperationKind operation = OperationKind::reduce_scatter;
  CodecOptions codec;
};
std::size_t packet_elements(const CodecOptions& codec) {
  return codec::format_of(codec, DataType::f32)
      .elements_for(kDatagramBytes - wire::kDataHeaderBytes);
}
constexpr PerRank kAlike = {.2, .2, .2, .2};

// Returns a gradient per sample, which differs by rank and packet.
double gradient(int rank, std::size_t packet) {
  return (rank + 1) * (1.0 + 0.5 * std::sin(static_cast<double>(packet) + rank));
}

struct Contribution {
  double planned = 0;   // samples
  double finished = 0;  // samples
  double noise = 0;     // sum over the finished samples of deviations from the mean gradient
};

class Experiment {
 public:
  explicit Experiment(const Setting& setting)
      : setting_(setting),
        packet_(packet_elements(setting.codec)),
        shard_(kPackets * packet_),
        group_(options_for(setting)) {
    for (int rank = 0; rank < kRanks; ++rank) {
      inputs_[rank].assign(kRanks * shard_, 0.0f);
      outputs_[rank].assign(whole() ? kRanks * shard_ : shard_, 0.0f);
    }
  }

  std::array<Sample, kRanks> realised;  // by owner: result minus sum G / sum c of the round
  Sample common;  // result minus the common gradient, if anything with units arrived
  Sample level;   // result for the common gradient

  void run() {
    for (int round = 0; round < kRounds && !::testing::Test::HasFailure(); ++round) {
      draw();
      testing::run_round(group_, [&](Rank rank) { return spec(rank); });
      take_results();
    }
  }

 private:
  static testing::GroupOptions options_for(const Setting& setting) {
    testing::GroupOptions options{.size = kRanks, .datagram_bytes = kDatagramBytes, .seed = 20261};
    options.faults.link_loss.assign(setting.loss.begin(), setting.loss.end());
    options.faults.seed = 11;
    return options;
  }

  bool whole() const { return setting_.operation != OperationKind::reduce_scatter; }
  double chance() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  void draw() {
    for (int rank = 0; rank < kRanks; ++rank) {
      Contribution& work = work_[rank] = {};
      const bool nothing = chance() < kNothing;
      for (int i = 0; i < kMicroBatches; ++i) {
        const double samples = chance() < 0.5 ? 1 : 2;
        const bool dropped = chance() < setting_.drop[rank];
        const double deviation = chance() - 0.5;
        work.planned += samples;
        if (nothing || dropped) continue;
        work.finished += samples;
        work.noise += samples * deviation;
      }
      for (std::size_t place = 0; place < kRanks * kPackets; ++place) {
        float* const elements = inputs_[rank].data() + place * packet_;
        elements[kDiffering] =
            static_cast<float>(work.finished * gradient(rank, place % kPackets) + work.noise);
        elements[kShared] = static_cast<float>(work.finished * kCommon + work.noise);
        elements[kUnits] = static_cast<float>(work.finished);
      }
    }
  }

  OperationSpec spec(Rank rank) {
    OperationSpec spec{.kind = setting_.operation,
                       .input = std::span(std::as_const(inputs_[rank]))};
    spec.output = std::span(outputs_[rank]);
    spec.options = {.op = ReduceOp::avg,
                    .delivery = best_effort(std::chrono::seconds(60)),
                    .codec = setting_.codec};
    spec.options.estimator = setting_.estimator;
    spec.options.weight = setting_.fixed_maximum ? work_[rank].planned : work_[rank].finished;
    return spec;
  }

  // Returns sum G / sum c of this round, or 0 if no rank finished anything.
  double mean_of_round(std::size_t packet) const {
    double sum = 0;
    double units = 0;
    for (int rank = 0; rank < kRanks; ++rank) {
      sum += work_[rank].finished * gradient(rank, packet) + work_[rank].noise;
      units += work_[rank].finished;
    }
    return units > 0 ? sum / units : 0.0;
  }

  void take_results() {
    double shared = 0;
    double off = 0;
    for (int owner = 0; owner < kRanks; ++owner) {
      const float* const shard = outputs_[owner].data() + (whole() ? owner * shard_ : 0);
      double error = 0;
      for (std::size_t packet = 0; packet < kPackets; ++packet) {
        const float* const elements = shard + packet * packet_;
        error += elements[kDiffering] - mean_of_round(packet);
        shared += elements[kShared];
        off += elements[kUnits] > 0 ? elements[kShared] - kCommon : 0.0;
      }
      realised[owner].add(error / kPackets);
    }
    level.add(shared / (kPackets * kRanks));
    common.add(off / (kPackets * kRanks));
  }

  Setting setting_;
  std::size_t packet_;  // elements
  std::size_t shard_;   // elements
  testing::EngineGroup group_;
  std::mt19937_64 random_{5};
  std::array<Contribution, kRanks> work_;
  std::array<std::vector<float>, kRanks> inputs_;
  std::array<std::vector<float>, kRanks> outputs_;
};

// --- predictions, over all possible amounts of finished work and all arrivals ---

// Returns the probabilities of finishing 0, 1, ... samples.
std::vector<double> finished_chances(double drop) {
  std::vector<double> chances(kSamplesMax + 1, 0.0);
  chances[0] = 1.0;
  for (int i = 0; i < kMicroBatches; ++i) {
    std::vector<double> next(kSamplesMax + 1, 0.0);
    for (int have = 0; have <= 2 * i; ++have) {
      next[have] += drop * chances[have];
      for (const int samples : {1, 2}) next[have + samples] += (1 - drop) / 2 * chances[have];
    }
    chances = next;
  }
  for (double& chance : chances) chance *= 1 - kNothing;
  chances[0] += kNothing;
  return chances;
}

// Calls visit(samples finished by each rank, probability) for all cases.
template <typename Visit>
void for_each_work(const PerRank& drop, Visit visit) {
  std::array<std::vector<double>, kRanks> chances;
  for (int rank = 0; rank < kRanks; ++rank) chances[rank] = finished_chances(drop[rank]);
  constexpr int kBase = kSamplesMax + 1;
  for (int code = 0; code < kBase * kBase * kBase * kBase; ++code) {
    PerRank units{};
    double chance = 1.0;
    for (int rank = 0, rest = code; rank < kRanks; ++rank, rest /= kBase) {
      units[rank] = rest % kBase;
      chance *= chances[rank][rest % kBase];
    }
    visit(units, chance);
  }
}

double sum_of(const PerRank& values) {
  return values[0] + values[1] + values[2] + values[3];
}

// Returns the share that each rank's mean has in one packet's result, by the formulas of
// src/math/estimate/README.md. `here` is 1 for ranks whose packet arrived, else 0.
PerRank shares_of(const Setting& setting, int owner, const PerRank& units, const PerRank& here) {
  PerRank arrived;
  for (int rank = 0; rank < kRanks; ++rank) arrived[rank] = units[rank] * here[rank];
  const double all = sum_of(units);
  const double others = sum_of(arrived) - arrived[owner];
  PerRank shares{};
  for (int rank = 0; rank < kRanks && sum_of(arrived) > 0; ++rank) {
    switch (setting.estimator) {
      case Estimator::zero_fill:
        shares[rank] = arrived[rank] / all;
        break;
      case Estimator::stratified:
        shares[rank] =
            others > 0
                ? (rank == owner ? units[owner] : arrived[rank] * (all - units[owner]) / others) /
                      all
                : (rank == owner ? 1.0 : 0.0);
        break;
      default:
        shares[rank] = arrived[rank] / sum_of(arrived);
        break;
    }
  }
  return shares;
}

// Returns the predicted mean error: sum (expected share - c / sum c) * gradient, averaged over a
// shard. c is a rank's number of finished samples.
double predicted_tilt(const Setting& setting, int owner) {
  const bool owner_may_miss = setting.estimator == Estimator::symmetric_ratio;
  PerRank off{};
  for_each_work(setting.drop, [&](const PerRank& units, double chance) {
    const double all = sum_of(units);
    for (int mask = 0; mask < 1 << kRanks && all > 0; ++mask) {
      PerRank here;
      double arrives = chance;
      for (int rank = 0; rank < kRanks; ++rank) {
        here[rank] = mask >> rank & 1;
        const double loss = rank == owner && !owner_may_miss ? 0.0 : setting.loss[rank];
        arrives *= here[rank] > 0 ? 1 - loss : loss;
      }
      if (arrives == 0) continue;
      const PerRank shares = shares_of(setting, owner, units, here);
      for (int rank = 0; rank < kRanks; ++rank)
        off[rank] += arrives * (shares[rank] - units[rank] / all);
    }
  });
  double tilt = 0;
  for (std::size_t packet = 0; packet < kPackets; ++packet) {
    for (int rank = 0; rank < kRanks; ++rank) tilt += off[rank] * gradient(rank, packet) / kPackets;
  }
  return tilt;
}

double no_tilt(const Setting& setting, int owner) {
  (void)setting;
  (void)owner;
  return 0.0;
}

// --- tests ---

// A tenth of the ratio rule's bias over the links of these tests.
constexpr double kResolution = 0.01;

void expect_realised(const Setting& setting, double (*predict)(const Setting&, int owner)) {
  Experiment experiment(setting);
  experiment.run();
  testing::print_header("result less sum G / sum c");
  for (int owner = 0; owner < kRanks; ++owner) {
    const std::string name =
        std::string(to_string(setting.estimator)) + ", owner " + std::to_string(owner);
    expect_matches(name, experiment.realised[owner], predict(setting, owner), kResolution);
  }
}

TEST(UnbiasedForTheMeanOfTheRound, HorvitzThompson) {
  expect_realised({.estimator = Estimator::horvitz_thompson}, no_tilt);
}

TEST(UnbiasedForTheMeanOfTheRound, Augmented) {
  expect_realised({.estimator = Estimator::augmented}, no_tilt);
}

TEST(UnbiasedForTheMeanOfTheRound, HorvitzThompsonThroughAnAllReduce) {
  expect_realised(
      {.estimator = Estimator::horvitz_thompson, .operation = OperationKind::all_reduce}, no_tilt);
}

TEST(UnbiasedForTheMeanOfTheRound, HorvitzThompsonOfBlockScaledContributionsOfAReplica) {
  expect_realised({.estimator = Estimator::horvitz_thompson,
                   .operation = OperationKind::replica_reduce,
                   .codec = *parse_codec("int8")},
                  no_tilt);
}

TEST(UnbiasedForTheMeanOfTheRound, SymmetricRatioOfRanksThatFinishAlikeOnEqualLinks) {
  expect_realised({.estimator = Estimator::symmetric_ratio, .loss = kAlike, .drop = kAlike},
                  predicted_tilt);
}

TEST(KnownTilt, OfRatio) {
  expect_realised({.estimator = Estimator::ratio}, predicted_tilt);
}
TEST(KnownTilt, OfStratifiedOnEqualLinks) {
  expect_realised({.estimator = Estimator::stratified, .loss = kAlike}, predicted_tilt);
}
TEST(KnownTilt, OfZeroFill) {
  expect_realised({.estimator = Estimator::zero_fill}, predicted_tilt);
}

TEST(UnbiasedForACommonGradient, RatioAndStratifiedOnAnyLinks) {
  testing::print_header("result less the common gradient");
  for (const Estimator estimator : {Estimator::ratio, Estimator::stratified}) {
    Experiment experiment({.estimator = estimator});
    experiment.run();
    expect_matches(std::string(to_string(estimator)), experiment.common, 0.0, kResolution / 5);
  }
}

TEST(FixedMaximum, ShrinksTheCommonGradientByTheDropRate) {
  testing::print_header("common gradient by weights of what was planned");
  for (const Estimator estimator : {Estimator::ratio, Estimator::horvitz_thompson}) {
    const Setting setting{
        .estimator = estimator, .loss = {0, .1, .2, .3}, .drop = kAlike, .fixed_maximum = true};
    const double drop_rate = 1 - (1 - kNothing) * (1 - kAlike[0]);
    Experiment experiment(setting);
    experiment.run();
    expect_matches(std::string(to_string(estimator)), experiment.level, kCommon * (1 - drop_rate),
                   kResolution / 2);
  }
}

}  // namespace
}  // namespace leeway
