#include "collective/own_contribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/crc32c.h"

namespace leeway::collective {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

// Rank 0 of two ranks, each of which owns half of 2,048 floats in packets of 256.
class ContributionOfOneOfTwo : public ::testing::Test {
 protected:
  ContributionOfOneOfTwo() {
    std::iota(input.begin(), input.end(), 1.0f);
    plan.size = 2;
    plan.payload_bytes = 1'024;
    plan.reduction.shards = schedule::ShardMap::even(input.size(), 2);
    plan.reduction.input = reinterpret_cast<const std::byte*>(input.data());
    plan.reduction.result = result.data();
  }
  std::vector<float> floats(ByteSpan bytes) const {
    const auto values = floats_of(bytes);
    return {values.begin(), values.end()};
  }
  std::vector<float> input_at(std::size_t first) const {
    return {input.begin() + static_cast<std::ptrdiff_t>(first),
            input.begin() + static_cast<std::ptrdiff_t>(first + 256)};
  }

  std::vector<float> input = std::vector<float>(2'048);
  std::vector<std::byte> result = std::vector<std::byte>(4'096);
  std::vector<std::byte> scratch = std::vector<std::byte>(1'024);
  OperationPlan plan;
  OwnContribution own{nullptr};
};

TEST_F(ContributionOfOneOfTwo, IsSentFromWhereItLies) {
  own.begin(plan);
  const protocol::Payload payload = own.payload(1, {2}, {3}, scratch);
  EXPECT_EQ(payload.bytes.data(), reinterpret_cast<const std::byte*>(&input[1'024 + 512]));
  EXPECT_EQ(payload.bytes.size(), 1'024u);
  EXPECT_EQ(payload.crc, crc32c(payload.bytes));
  EXPECT_THAT(floats(own.to_self({1})), ElementsAreArray(input_at(256)));
}

TEST_F(ContributionOfOneOfTwo, ACopyIsWhatTheInputWas) {
  plan.reduction.copy_input = true;
  const auto expected = input_at(1'024);
  own.begin(plan);
  std::fill(input.begin(), input.end(), 0.0f);
  EXPECT_THAT(floats(own.payload(1, {0}, {0}, scratch).bytes), ElementsAreArray(expected));
}

TEST_F(ContributionOfOneOfTwo, AFactorIsAppliedOnce) {
  for (const bool copies : {false, true}) {
    plan.reduction.copy_input = copies;
    std::fill(input.begin(), input.end(), 2.0f);
    plan.reduction.factor = Scalar(3.0f);
    own.begin(plan);
    for (int call = 0; call < 2; ++call) {
      EXPECT_THAT(floats(own.payload(1, {0}, {0}, scratch).bytes), Each(6.0f)) << copies;
      EXPECT_THAT(floats(own.to_self({0})), Each(6.0f)) << copies;
    }
  }
}

TEST_F(ContributionOfOneOfTwo, IsKeptWhereTheResultTakesItsPlaceAndMayBeFormedAgain) {
  plan.reduction.result = reinterpret_cast<std::byte*>(input.data());
  own.begin(plan);
  EXPECT_EQ(own.kept_to_self({1}).data(), own.to_self({1}).data());
  plan.reduction.finite_only = true;
  own.begin(plan);
  const ByteSpan kept = own.kept_to_self({1});
  EXPECT_NE(kept.data(), own.to_self({1}).data());
  EXPECT_THAT(floats(kept), ElementsAreArray(input_at(256)));
}

TEST_F(ContributionOfOneOfTwo, PaysWhatEarlierCallsLeftOutToOwnersThatUseIt) {
  std::vector<float> residual(input.size(), 0.5f);
  plan.reduction.residual = residual;
  plan.reduction.op = ReduceOp::avg;
  plan.owner_weights = {1.0, 0.0};
  plan.round.owner_weights = plan.owner_weights;
  std::fill(input.begin(), input.end(), 2.0f);
  own.begin(plan);
  EXPECT_THAT(floats(own.to_self({0})), Each(2.5f));
  EXPECT_THAT(floats(own.payload(1, {0}, {0}, scratch).bytes), Each(2.0f));
  EXPECT_EQ(residual[0], 0.0f) << "paid";
  EXPECT_EQ(residual[1'024], 0.5f) << "still owed";
  EXPECT_THAT(input, Each(2.0f)) << "the caller's";
}

}  // namespace
}  // namespace leeway::collective
