// Values that are no numbers, and tensors that are hardly there.
#include <gtest/gtest.h>

#include <cmath>
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
    // Every rank holds the same kind of value: agreement does not depend on the values.
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
    // Sums over 2, 0 and 6 units
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
