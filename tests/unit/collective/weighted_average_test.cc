// Tests the average per unit of work, for ranks that did different amounts of work: every class of
// delivery, estimator and reduction, under packet loss. One rank finished nothing, so its buffer
// may hold any values.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "schedule/shard_map.h"
#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr int kRanks = 4;
constexpr std::size_t kPacketElements =
    96;  // float32 elements in a datagram of 512 B, in whole codec blocks
constexpr std::size_t kWeightedShard = 16 * kPacketElements;
constexpr std::size_t kWeightedCount = kRanks * kWeightedShard;
constexpr double kWeightedLoss = 0.2;

using Weights = std::array<double, kRanks>;
constexpr Weights kUneven = {1, 12, 0, 5};
constexpr Weights kNothing = {0, 0, 0, 0};

constexpr Estimator kWeightedEstimators[] = {Estimator::zero_fill,        Estimator::ratio,
                                             Estimator::symmetric_ratio,  Estimator::stratified,
                                             Estimator::horvitz_thompson, Estimator::augmented};
constexpr OperationKind kReductions[] = {OperationKind::all_reduce, OperationKind::reduce_scatter,
                                         OperationKind::replica_reduce};
constexpr Delivery::Kind kClasses[] = {Delivery::Kind::exact, Delivery::Kind::bounded,
                                       Delivery::Kind::best_effort};

struct WeightedSetting {
  OperationKind kind = OperationKind::reduce_scatter;
  Delivery::Kind delivery = Delivery::Kind::best_effort;
  Estimator estimator = Estimator::ratio;
  CodecOptions codec;
  Weights weights = kUneven;
  double loss = kWeightedLoss;
};
std::string describe(const WeightedSetting& setting) {
  return std::string(to_string(setting.kind)) + " " + std::string(to_string(setting.delivery)) +
         " " + std::string(to_string(setting.estimator)) + " " + to_string(setting.codec);
}

// Returns the value that each unit of work gives, which is the same on all ranks.
double per_unit(std::size_t element) {
  return 2.0 + std::sin(static_cast<double>(element));
}

// One call in which each rank contributes the sum over its units.
class WeightedCall {
 public:
  explicit WeightedCall(const WeightedSetting& setting)
      : setting_(setting), group_(network(setting)) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      const double weight = setting.weights[rank];
      for (std::size_t i = 0; i < kWeightedCount; ++i) {
        inputs_[rank].push_back(weight == 0.0 ? std::nanf("")
                                              : static_cast<float>(weight * per_unit(i)));
      }
      outputs_[rank].resize(setting.kind == OperationKind::reduce_scatter ? kWeightedShard
                                                                          : kWeightedCount);
    }
  }

  std::vector<float>& residual(Rank rank) { return residuals_[rank]; }
  std::vector<double>& owner_weights(Rank rank) { return owner_weights_[rank]; }

  void run() {
    requests_ = group_.submit_all([&](Rank rank) {
      OperationSpec spec{.kind = setting_.kind,
                         .input = std::span(inputs_[rank]),
                         .output = std::span(outputs_[rank])};
      spec.options = {
          .op = ReduceOp::avg, .delivery = {setting_.delivery, 0.05, 10s}, .codec = setting_.codec};
      spec.options.estimator = setting_.estimator;
      spec.options.weight = setting_.weights[rank];
      spec.options.owner_weights = owner_weights_[rank];
      spec.options.confirm_use = !owner_weights_[0].empty();
      spec.options.residual = residuals_[rank];
      return spec;
    });
    ASSERT_TRUE(group_.run(requests_)) << describe(setting_);
    for (const Request* request : requests_)
      ASSERT_TRUE(request->status.ok()) << request->status.text();
  }

  const CollectiveReport& report(Rank rank) const { return requests_[rank]->report; }
  // Returns the shard that this rank reduced.
  std::span<const float> shard(Rank owner) const {
    const bool alone = setting_.kind == OperationKind::reduce_scatter;
    return std::span(outputs_[owner]).subspan(alone ? 0 : owner * kWeightedShard, kWeightedShard);
  }
  static double truth(Rank owner, std::size_t i) { return per_unit(owner * kWeightedShard + i); }

 private:
  static GroupOptions network(const WeightedSetting& setting) {
    GroupOptions options{.size = kRanks, .datagram_bytes = 512};
    options.faults.loss = setting.loss;
    options.faults.seed = 3;
    return options;
  }

  WeightedSetting setting_;
  EngineGroup group_;
  std::array<std::vector<float>, kRanks> inputs_;
  std::array<std::vector<float>, kRanks> outputs_;
  std::array<std::vector<float>, kRanks> residuals_;
  std::array<std::vector<double>, kRanks> owner_weights_;
  std::vector<Request*> requests_;
};

template <typename Check>
void for_each_setting(Check check) {
  for (const OperationKind kind : kReductions) {
    for (const Delivery::Kind delivery : kClasses) {
      for (const Estimator estimator : kWeightedEstimators) {
        check(WeightedSetting{.kind = kind, .delivery = delivery, .estimator = estimator});
      }
    }
  }
}

// All units of work give the same value here. Returns true if the estimator then gives exactly that
// value, whatever was lost.
bool reproduces_a_common_mean(const WeightedSetting& setting, Rank owner) {
  if (setting.delivery == Delivery::Kind::exact) return true;
  switch (setting.estimator) {
    case Estimator::ratio:
    case Estimator::stratified:
      return true;
    case Estimator::augmented:
      return setting.weights[owner] > 0.0;  // without units of its own, the owner has no guess
    default:
      return false;
  }
}

TEST(WeightedAverageUnderLoss, IsTheCommonMeanPerUnitInEveryClassAndReduction) {
  for_each_setting([](const WeightedSetting& setting) {
    WeightedCall call(setting);
    call.run();
    for (Rank owner = 0; owner < kRanks; ++owner) {
      if (!reproduces_a_common_mean(setting, owner)) continue;
      const std::uint64_t untouched = call.report(owner).elements_untouched;
      std::uint64_t zeros = 0;
      double worst = 0.0;
      for (std::size_t i = 0; i < kWeightedShard; ++i) {
        const float value = call.shard(owner)[i];
        zeros += value == 0.0f;
        // NaN counts as a large error, because fmax() would ignore it.
        if (value != 0.0f)
          worst = std::fmax(worst,
                            std::isnan(value) ? 1e9 : std::abs(value / call.truth(owner, i) - 1));
      }
      EXPECT_LT(worst, 1e-5) << describe(setting) << ", owner " << owner;
      EXPECT_EQ(zeros, untouched) << describe(setting) << ", owner " << owner;
    }
  });
}

// Returns the shard's mean relative to that without loss.
double recovered(const WeightedCall& call, Rank owner) {
  double got = 0.0;
  double want = 0.0;
  for (std::size_t i = 0; i < kWeightedShard; ++i) {
    got += call.shard(owner)[i] / call.truth(owner, i);
    want += 1.0;
  }
  return got / want;
}

// The weights of a link's packets sum up to the number of its packets, so a shard of equal values
// is summed exactly however work is divided.
TEST(WeightedAverageUnderLoss, HorvitzThompsonSumsAShardExactly) {
  for (const OperationKind kind : kReductions) {
    WeightedCall call({.kind = kind, .estimator = Estimator::horvitz_thompson});
    call.run();
    for (Rank owner = 0; owner < kRanks; ++owner)
      EXPECT_NEAR(recovered(call, owner), 1.0, 1e-6) << "owner " << owner;
  }
}

TEST(WeightedAverageUnderLoss, ZeroFillLosesTheUnitsThatWereLost) {
  WeightedCall call({.estimator = Estimator::zero_fill});
  call.run();
  for (Rank owner = 0; owner < kRanks; ++owner) {
    double units = kUneven[owner];
    for (const PeerReport& peer : call.report(owner).peers) {
      units += kUneven[peer.rank] * static_cast<double>(peer.arrived) /
               static_cast<double>(peer.expected);
    }
    EXPECT_NEAR(recovered(call, owner), units / 18.0, 1e-6) << "owner " << owner;
  }
}

TEST(WeightedAverageUnderLoss, CodecsThatScaleBlocksKeepTheWeights) {
  // The bound is the format's relative rms error on values of one magnitude.
  for (const auto& [text, bound] : {std::pair{"int8", 0.01},
                                    {"fp8_e4m3_block", 0.04},
                                    {"mxfp8_e4m3", 0.04},
                                    {"mxfp4", 0.25},
                                    {"nvfp4", 0.2},
                                    {"nvfp4:rotate", 0.2},
                                    {"luq:draws=4", 0.3}}) {
    for (const Estimator estimator : {Estimator::ratio, Estimator::stratified}) {
      WeightedCall call({.estimator = estimator, .codec = *parse_codec(text)});
      call.run();
      for (Rank owner = 0; owner < kRanks; ++owner) {
        double square = 0.0;
        for (std::size_t i = 0; i < kWeightedShard; ++i)
          square += std::pow(call.shard(owner)[i] / call.truth(owner, i) - 1, 2);
        EXPECT_LT(std::sqrt(square / kWeightedShard), bound) << text << ", owner " << owner;
        EXPECT_GT(square, 0.0) << text << " changed nothing";
      }
    }
  }
}

TEST(WeightedAverage, OfNoUnitsAnywhereIsZerosReportedAsUntouched) {
  for_each_setting([](WeightedSetting setting) {
    setting.weights = kNothing;
    for (const char* codec : {"native", "int8", "nvfp4:rotate"}) {
      for (const double loss : {0.0, kWeightedLoss}) {
        setting.codec = *parse_codec(codec);
        setting.loss = loss;
        WeightedCall call(setting);
        call.run();
        for (Rank owner = 0; owner < kRanks; ++owner) {
          EXPECT_EQ(call.report(owner).elements_untouched, kWeightedShard)
              << describe(setting) << " loss " << loss;
          EXPECT_FALSE(call.report(owner).noise.measured);
          for (const float value : call.shard(owner)) ASSERT_EQ(value, 0.0f) << describe(setting);
        }
      }
    }
  });
}

TEST(WeightedAverage, OfOneRankWithoutUnitsIsUntouched) {
  std::vector<float> data(100, std::nanf(""));
  EngineGroup group(GroupOptions{.size = 1});
  const auto requests = group.submit_all([&](Rank) {
    OperationSpec spec{
        .kind = OperationKind::all_reduce, .input = std::span(data), .output = std::span(data)};
    spec.options = {.op = ReduceOp::avg, .weight = 0.0};
    return spec;
  });
  ASSERT_TRUE(group.run(requests));
  EXPECT_EQ(requests[0]->report.elements_untouched, 100u);
  EXPECT_EQ(data, std::vector<float>(100, 0.0f));
}

TEST(WeightedAverage, OfTheLeastAndTheLargestWeightIsFinite) {
  for (const Weights& weights :
       {Weights{0x1p-64, 0x1p-64, 0x1p-64, 0x1p-64}, Weights{0x1p+64, 0x1p+64, 0x1p+64, 0x1p+64},
        Weights{0x1p-64, 0x1p+64, 0, 1}}) {
    for_each_setting([&](WeightedSetting setting) {
      setting.weights = weights;
      WeightedCall call(setting);
      call.run();
      for (Rank owner = 0; owner < kRanks; ++owner) {
        for (const float value : call.shard(owner))
          ASSERT_TRUE(std::isfinite(value)) << describe(setting);
        if (reproduces_a_common_mean(setting, owner) &&
            call.report(owner).elements_untouched == 0) {
          EXPECT_NEAR(recovered(call, owner), 1.0, 1e-4)
              << describe(setting) << ", owner " << owner;
        }
      }
    });
  }
}

// A call without units uses no part of the residual, so it may forget no part of it.
TEST(WeightedAverage, ARankWithoutUnitsKeepsItsResidual) {
  WeightedCall call({.codec = *parse_codec("int8")});
  for (Rank rank = 0; rank < kRanks; ++rank) call.residual(rank).assign(kWeightedCount, 0.125f);
  call.run();
  EXPECT_EQ(call.residual(2), std::vector<float>(kWeightedCount, 0.125f));
  EXPECT_NE(call.residual(1), std::vector<float>(kWeightedCount, 0.125f));
}

// A rank must keep the part of its residual for shards for which it has no units. Rank 1 has units
// only for the shards of ranks 0 and 2, rank 2 has none, and rank 3 lacks them for one shard.
TEST(WeightedAverage, AResidualIsPaidToTheOwnersForWhomThereAreUnits) {
  const std::array<Weights, kRanks> by_owner = {
      {{1, 1, 1, 1}, {12, 0, 12, 0}, {0, 0, 0, 0}, {5, 5, 0, 5}}};
  for (const CodecOptions codec : {CodecOptions(Codec::native), *parse_codec("int8")}) {
    WeightedCall call({.delivery = Delivery::Kind::exact, .codec = codec});
    for (Rank rank = 0; rank < kRanks; ++rank) {
      call.residual(rank).assign(kWeightedCount, 0.125f);
      call.owner_weights(rank).assign(by_owner[rank].begin(), by_owner[rank].end());
    }
    call.run();
    const double tolerance = codec.codec == Codec::native ? 1e-5 : 0.05;
    for (Rank owner = 0; owner < kRanks; ++owner) {
      double units = 0.0;
      double paid = 0.0;
      for (Rank rank = 0; rank < kRanks; ++rank) {
        const double weight = by_owner[rank][owner];
        units += weight;
        paid += weight == 0.0 ? 0.0 : 0.125;
        const auto owed =
            std::span(call.residual(rank)).subspan(owner * kWeightedShard, kWeightedShard);
        const auto kept = std::count(owed.begin(), owed.end(), 0.125f);
        EXPECT_EQ(kept == static_cast<std::ptrdiff_t>(kWeightedShard), weight == 0.0)
            << to_string(codec) << ": rank " << rank << ", owner " << owner << " kept " << kept;
      }
      double worst = 0.0;
      for (std::size_t i = 0; i < kWeightedShard; ++i)
        worst =
            std::max(worst, std::abs(call.shard(owner)[i] - call.truth(owner, i) - paid / units));
      EXPECT_LT(worst, tolerance) << to_string(codec) << ": owner " << owner;
    }
  }
}

// The buffers hold the sums 12, 1 and 3 of 6, 1 and 1 units, so the average is 16 / 8 = 2. Rank 2
// did nothing, so the infinity in its buffer must not enter the average.
TEST(WeightedAverage, WorksForSixteenBits) {
  constexpr std::array<std::uint16_t, kRanks> kBrain = {0x4140, 0x3F80, 0x7F80, 0x4040};
  constexpr std::array<std::uint16_t, kRanks> kHalf = {0x4A00, 0x3C00, 0x7C00, 0x4200};
  constexpr std::array<double, kRanks> kUnits = {6, 1, 0, 1};  // 8 units
  for (const DataType type : {DataType::bf16, DataType::f16}) {
    for (const Delivery& delivery : {exact(10s), bounded(0.5, 10s)}) {
      EngineGroup group(GroupOptions{.size = kRanks});
      std::array<std::vector<std::uint16_t>, kRanks> data;
      const auto requests = group.submit_all([&](Rank rank) {
        data[rank].assign(3'000, type == DataType::bf16 ? kBrain[rank] : kHalf[rank]);
        OperationSpec spec{.kind = OperationKind::all_reduce,
                           .input = {data[rank].data(), data[rank].size(), type},
                           .output = {data[rank].data(), data[rank].size(), type}};
        spec.options = {.op = ReduceOp::avg, .delivery = delivery};
        spec.options.weight = kUnits[rank];
        return spec;
      });
      ASSERT_TRUE(group.run(requests));
      for (Rank rank = 0; rank < kRanks; ++rank) {
        ASSERT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.text();
        constexpr std::uint16_t two = 0x4000;  // 2.0 in both types
        EXPECT_EQ(std::count(data[rank].begin(), data[rank].end(), two), 3'000) << rank;
      }
    }
  }
}

}  // namespace
}  // namespace leeway::collective
