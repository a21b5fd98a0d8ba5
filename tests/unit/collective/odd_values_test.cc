// Tests values that are not finite, and tensors with few elements or none.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::size_t kOddCount = 10000;

class OddValue : public ::testing::TestWithParam<std::tuple<Estimator, Codec, Delivery::Kind>> {
 protected:
  void run(double loss) {
    const Estimator estimator = std::get<0>(GetParam());
    const Codec codec = std::get<1>(GetParam());
    const Delivery::Kind kind = std::get<2>(GetParam());
    GroupOptions options{.size = 3};
    options.faults.loss = loss;
    EngineGroup group(options);
    const auto requests = group.submit_all([&](Rank rank) {
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = std::span(data_[rank]);
      spec.output = std::span(data_[rank]);
      spec.options.delivery = {kind, 0.05, 10s};
      spec.options.estimator = estimator;
      spec.options.codec = codec;
      spec.options.keep_non_finite = true;
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    for (const Request* request : requests)
      EXPECT_TRUE(request->status.ok()) << request->status.text();
  }
  std::array<std::vector<float>, 3> data_ = {std::vector<float>(kOddCount, 1.0f),
                                             std::vector<float>(kOddCount, 2.0f),
                                             std::vector<float>(kOddCount, 3.0f)};
};

TEST_P(OddValue, PropagatesToEveryRankAndToNoOtherElement) {
  data_[0][10] = std::nanf("");
  data_[1][5000] = kInf;
  data_[2][9999] = -kInf;
  data_[0][7000] = kInf;
  data_[1][7000] = -kInf;
  run(0.0);
  for (const auto& row : data_) {
    EXPECT_TRUE(std::isnan(row[10]));
    EXPECT_EQ(row[5000], kInf);
    EXPECT_EQ(row[9999], -kInf);
    EXPECT_TRUE(std::isnan(row[7000]));
    EXPECT_EQ(row[11], 6.0f);
    EXPECT_EQ(row[4999], 6.0f);
  }
}

TEST_P(OddValue, EverywhereAndUnderLossNeitherCrashesNorHangs) {
  for (std::size_t i = 0; i < kOddCount; ++i) {
    data_[i % 3][i] = i % 2 == 0 ? std::nanf("") : kInf;
  }
  run(0.3);
  for (std::size_t i = 0; i < kOddCount; ++i) {
    // All ranks must hold the same kind of value, finite or not.
    EXPECT_EQ(std::isnan(data_[0][i]), std::isnan(data_[1][i]));
    EXPECT_EQ(std::isinf(data_[0][i]), std::isinf(data_[2][i]));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OddValue,
    ::testing::Combine(::testing::Values(Estimator::ratio, Estimator::symmetric_ratio,
                                         Estimator::horvitz_thompson, Estimator::augmented),
                       ::testing::Values(Codec::native, Codec::fp16, Codec::bf16),
                       ::testing::Values(Delivery::Kind::exact, Delivery::Kind::bounded,
                                         Delivery::Kind::best_effort)));

// Returns the lossy average of 1, 2 and 3 without the contribution of `missing`.
float average_without(Rank missing, Rank owner, Estimator estimator) {
  const std::array<float, 3> values = {1.0f, 2.0f, 3.0f};
  const float own = values[owner];
  const float others = 6.0f - values[missing] - (missing == owner ? 0.0f : own);
  switch (estimator) {
    case Estimator::zero_fill:
    case Estimator::horvitz_thompson:
      return (6.0f - values[missing]) / 3.0f;
    case Estimator::augmented:  // the owner's own contribution is the guess
      return missing == owner ? others / 3.0f : (2.0f * own + others) / 3.0f;
    case Estimator::stratified:
      return missing == owner ? others / 2.0f : (own + 2.0f * others) / 3.0f;
    default:
      return (6.0f - values[missing]) / 2.0f;
  }
}

class NonFinite : public ::testing::TestWithParam<std::tuple<Estimator, Codec, Delivery::Kind>> {};

// The tensors are in place and too large to be copied. So when a sum must be formed again, results
// have already overwritten an input.
TEST_P(NonFinite, ContributionToAPacketCountsAsMissing) {
  constexpr std::size_t kCount = 300'000;
  const auto [estimator, codec, kind] = GetParam();
  EngineGroup group(GroupOptions{.size = 3});
  std::array<std::vector<float>, 3> data = {std::vector<float>(kCount, 1.0f),
                                            std::vector<float>(kCount, 2.0f),
                                            std::vector<float>(kCount, 3.0f)};
  data[0][10] = std::nanf("");  // a contribution to its own shard
  data[2][50'000] = kInf;       // to another one's
  data[0][150'000] = -kInf;
  const auto requests =
      group.submit_all([&, estimator = estimator, codec = codec, kind = kind](Rank rank) {
        OperationSpec spec{.kind = OperationKind::all_reduce};
        spec.input = spec.output = std::span(data[rank]);
        spec.options.op = ReduceOp::avg;
        spec.options.delivery = {kind, 0.05, 10s};
        spec.options.estimator = estimator;
        spec.options.codec = codec;
        return spec;
      });
  ASSERT_TRUE(group.run(requests));
  EXPECT_EQ(requests[0]->report.non_finite, 2u);
  EXPECT_EQ(requests[1]->report.non_finite, 1u);
  EXPECT_EQ(requests[2]->report.non_finite, 0u);
  // symmetric_ratio also drops the owner's own contribution, as often as links lose theirs.
  const std::uint64_t two = requests[0]->report.contributors.histogram[2];
  if (estimator == Estimator::symmetric_ratio) {
    EXPECT_GE(two, 2u);
  } else {
    EXPECT_EQ(two, 2u);
  }
  EXPECT_EQ(requests[0]->report.contributors.min, 2u);
  EXPECT_TRUE(std::isfinite(requests[0]->report.noise.gradient_mean_square));
  const float rounding = codec == Codec::nvfp4 ? 0.7f : 0.01f;
  for (const auto& row : data) {
    EXPECT_EQ(row, data[0]) << "all ranks hold the same bits";
    EXPECT_NEAR(row[10], average_without(0, 0, estimator), rounding);
    EXPECT_NEAR(row[11], average_without(0, 0, estimator), rounding) << "of the same packet";
    EXPECT_NEAR(row[50'000], average_without(2, 0, estimator), rounding);
    EXPECT_NEAR(row[150'000], average_without(0, 1, estimator), rounding);
    EXPECT_NEAR(row[20'000], 2.0f, rounding) << "of another packet";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, NonFinite,
    ::testing::Combine(::testing::Values(Estimator::zero_fill, Estimator::ratio,
                                         Estimator::symmetric_ratio, Estimator::stratified,
                                         Estimator::horvitz_thompson, Estimator::augmented),
                       ::testing::Values(Codec::native, Codec::fp16, Codec::nvfp4),
                       ::testing::Values(Delivery::Kind::bounded, Delivery::Kind::best_effort)));

// Estimators that use a link's realised rate count the packet as lost, so the link's other packets
// stand for it.
TEST(NonFiniteContribution, IsMadeUpForByTheOtherPacketsOfItsLink) {
  constexpr std::size_t kPackets = 4;
  constexpr std::size_t kShard = kPackets * 96;  // datagrams of 512 bytes
  for (const Estimator estimator : {Estimator::horvitz_thompson, Estimator::augmented}) {
    for (const CodecOptions codec : {Codec::native, Codec::fp32}) {
      EngineGroup group(GroupOptions{.size = 3, .datagram_bytes = 512});
      std::array<std::vector<float>, 3> data;
      std::array<std::vector<float>, 3> results;
      const auto requests = group.submit_all([&](Rank rank) {
        data[rank].assign(3 * kShard, static_cast<float>(1 << rank));
        if (rank == 2) data[rank][100] = kInf;              // rank 0's shard
        if (rank == 2) data[rank][kShard] = std::nanf("");  // rank 1's shard
        if (rank == 2) data[rank][2 * kShard - 1] = -kInf;
        results[rank].resize(kShard);
        OperationSpec spec{.kind = OperationKind::reduce_scatter,
                           .input = std::span(std::as_const(data[rank])),
                           .output = std::span(results[rank])};
        spec.options.op = ReduceOp::avg;
        spec.options.delivery = best_effort(10s);
        spec.options.estimator = estimator;
        spec.options.codec = codec;
        return spec;
      });
      ASSERT_TRUE(group.run(requests));
      for (Rank rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(requests[rank]->report.non_finite, rank == 0 ? 1u : rank == 1 ? 2u : 0u);
        double sum = 0.0;
        for (const float value : results[rank]) sum += value;
        EXPECT_NEAR(sum / kShard, 7.0 / 3.0, 1e-5)
            << "rank " << rank << ", " << to_string(estimator) << ", " << to_string(codec);
      }
    }
  }
}

TEST(NonFiniteContribution, OfTheOwnerIsMadeUpForByItsOtherPackets) {
  constexpr std::size_t kShard = 4 * 96;
  EngineGroup group(GroupOptions{.size = 2, .datagram_bytes = 512});
  std::array<std::vector<float>, 2> data;
  std::array<std::vector<float>, 2> results;
  const auto requests = group.submit_all([&](Rank rank) {
    data[rank].assign(2 * kShard, rank == 0 ? 1.0f : 5.0f);
    if (rank == 0) data[rank][0] = kInf;
    results[rank].resize(kShard);
    OperationSpec spec{.kind = OperationKind::reduce_scatter,
                       .input = std::span(std::as_const(data[rank])),
                       .output = std::span(results[rank])};
    spec.options.op = ReduceOp::avg;
    spec.options.delivery = best_effort(10s);
    spec.options.estimator = Estimator::horvitz_thompson;
    return spec;
  });
  ASSERT_TRUE(group.run(requests));
  EXPECT_EQ(requests[0]->report.non_finite, 1u);
  double sum = 0.0;
  for (const float value : results[0]) sum += value;
  EXPECT_NEAR(sum / kShard, 3.0, 1e-5);
}

// A receiver sees only the encoded values, so no codec may turn a non-finite value into a number.
TEST(NonFiniteContribution, IsSeenThroughEveryCodec) {
  for (int i = 0; i < kCodecCount; ++i) {
    const auto codec = static_cast<Codec>(i);
    if (codec == Codec::automatic) continue;
    for (const float odd : {kInf, -kInf, std::nanf("")}) {
      EngineGroup group(GroupOptions{.size = 2});
      std::array<std::vector<float>, 2> data;
      const auto requests = group.submit_all([&](Rank rank) {
        data[rank].assign(kOddCount, 1.0f);
        if (rank == 0) data[rank][kOddCount - 1] = odd;  // rank 1's shard
        OperationSpec spec{.kind = OperationKind::all_reduce};
        spec.input = spec.output = std::span(data[rank]);
        spec.options.op = ReduceOp::avg;
        spec.options.delivery = best_effort(10s);
        spec.options.codec = codec;
        spec.options.spread_codec = CodecOptions(Codec::fp32);
        return spec;
      });
      ASSERT_TRUE(group.run(requests));
      EXPECT_EQ(requests[1]->report.non_finite, 1u) << to_string(codec) << " of " << odd;
      EXPECT_EQ(data[0][kOddCount - 1], 1.0f) << to_string(codec) << " of " << odd;
    }
  }
}

// Makes one call of three ranks. Rank 0 has a NaN at the front of its own shard and nowhere else.
template <typename T>
class NonFiniteOf : public ::testing::Test {};
using FloatingTypes = ::testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(NonFiniteOf, FloatingTypes);

TYPED_TEST(NonFiniteOf, EachTypeIsSeen) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
    EngineGroup group(GroupOptions{.size = 3});
    std::array<std::vector<TypeParam>, 3> data;
    const auto requests = group.submit_all([&](Rank rank) {
      data[rank].assign(kOddCount, TypeParam{});
      // These bytes are a NaN in every type.
      if (rank == 0) std::memset(static_cast<void*>(data[rank].data()), 0xFF, sizeof(TypeParam));
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = spec.output = std::span(data[rank]);
      spec.options.op = op;
      spec.options.delivery = best_effort(10s);
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    EXPECT_EQ(requests[0]->report.non_finite, 1u);
    EXPECT_EQ(std::memcmp(&data[1][0], &data[1][1], sizeof(TypeParam)), 0) << "0 again";
  }
}

TEST(NonFiniteEverywhere, LeavesPacketsUntouched) {
  EngineGroup group(GroupOptions{.size = 2});
  std::array<std::vector<float>, 2> data;
  const auto requests = group.submit_all([&](Rank rank) {
    data[rank].assign(kOddCount, kInf);
    OperationSpec spec{.kind = OperationKind::all_reduce};
    spec.input = spec.output = std::span(data[rank]);
    spec.options.delivery = best_effort(10s);
    return spec;
  });
  ASSERT_TRUE(group.run(requests));
  EXPECT_EQ(data[1], std::vector<float>(kOddCount, 0.0f));
  EXPECT_EQ(requests[0]->report.elements_untouched + requests[1]->report.elements_untouched,
            kOddCount);
}

// Each contribution is finite, so the overflow of the sum must not count as non-finite input.
TEST(NonFiniteSum, ThatOverflowsIsWhatItIs) {
  EngineGroup group(GroupOptions{.size = 2});
  std::array<std::vector<float>, 2> data;
  const auto requests = group.submit_all([&](Rank rank) {
    data[rank].assign(100, std::numeric_limits<float>::max());
    OperationSpec spec{.kind = OperationKind::all_reduce};
    spec.input = spec.output = std::span(data[rank]);
    spec.options.delivery = best_effort(10s);
    return spec;
  });
  ASSERT_TRUE(group.run(requests));
  EXPECT_EQ(data[0][0], kInf);
  EXPECT_EQ(requests[0]->report.non_finite, 0u);
}

// The residual must not keep non-finite values, so the next call is right again.
TEST(NonFiniteResidual, DoesNotStay) {
  EngineGroup group(GroupOptions{.size = 2});
  std::array<std::vector<float>, 2> data;
  std::array<std::vector<float>, 2> residual = {std::vector<float>(kOddCount),
                                                std::vector<float>(kOddCount)};
  for (const bool odd : {true, false}) {
    const auto requests = group.submit_all([&](Rank rank) {
      data[rank].assign(kOddCount, 1.0f);
      if (odd && rank == 0) data[rank][kOddCount - 1] = kInf;
      OperationSpec spec{.kind = OperationKind::all_reduce};
      spec.input = spec.output = std::span(data[rank]);
      spec.options.delivery = best_effort(10s);
      spec.options.codec = Codec::nvfp4;
      spec.options.residual = residual[rank];
      return spec;
    });
    ASSERT_TRUE(group.run(requests));
    EXPECT_EQ(requests[1]->report.non_finite, odd ? 1u : 0u);
    EXPECT_NEAR(data[0][kOddCount - 1], 2.0f, 0.5f);
  }
}

TEST(TinyTensor, OfNothingOrOneElementWorksInEveryClass) {
  for (const std::size_t count : {0, 1}) {
    for (const Delivery delivery : {exact(1s), bounded(0.0, 1s), best_effort(1s)}) {
      for (int size = 1; size <= 5; ++size) {
        EngineGroup group(GroupOptions{.size = size});
        std::vector<std::vector<float>> data(size, std::vector<float>(count, 1.0f));
        const auto requests = group.submit_all([&](Rank rank) {
          OperationSpec spec{.kind = OperationKind::all_reduce};
          spec.input = std::span(data[rank]);
          spec.output = std::span(data[rank]);
          spec.options.delivery = delivery;
          return spec;
        });
        ASSERT_TRUE(group.run(requests, 1s));
        for (Rank rank = 0; rank < size; ++rank) {
          EXPECT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.text();
          if (count == 1) {
            EXPECT_EQ(data[rank][0], static_cast<float>(size));
          }
        }
      }
    }
  }
}

TEST(WeightedAverage, IsTheMeanPerUnitAndIgnoresRanksWithoutUnits) {
  EngineGroup group(GroupOptions{.size = 3});
  std::array<std::vector<float>, 3> data;
  const std::array<double, 3> weights = {2.0, 0.0, 6.0};
  const auto requests = group.submit_all([&](Rank rank) {
    // These are sums over 2, 0 and 6 units of work, so the mean per unit is (4 + 20) / 8 = 3.
    data[rank].assign(5000, rank == 0 ? 4.0f : rank == 1 ? 0.0f : 20.0f);
    OperationSpec spec{.kind = OperationKind::all_reduce};
    spec.input = std::span(data[rank]);
    spec.output = std::span(data[rank]);
    spec.options.op = ReduceOp::avg;
    spec.options.weight = weights[rank];
    return spec;
  });
  ASSERT_TRUE(group.run(requests));
  for (const auto& row : data) EXPECT_EQ(row, std::vector<float>(5000, 3.0f));
}

}  // namespace
}  // namespace leeway::collective
