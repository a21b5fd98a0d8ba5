// Tests where a call is cut into slices, and how the slices' reports are combined.
#include "collective/sliced_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kSlicedCount = 10'000;
constexpr std::size_t kSliceBytes = 4'096;
constexpr int kSlicedRanks = 3;

struct Sliced : ::testing::Test {
  OperationSpec all_reduce() {
    return {.kind = OperationKind::all_reduce,
            .input = std::span<const float>(in),
            .output = std::span(out)};
  }
  static std::size_t slices(const OperationSpec& spec, std::size_t lanes = 4) {
    return SlicedCall::slices(spec, kSlicedRanks, lanes, kSliceBytes);
  }

  std::vector<float> in = std::vector<float>(kSlicedCount, 1.0f);
  std::vector<float> out = std::vector<float>(kSlicedCount, 0.0f);
};

TEST_F(Sliced, SlicesCoverTheTensorOnceAndBeginAtWholeBlocks) {
  OperationSpec spec = all_reduce();
  std::vector<float> residual(kSlicedCount);
  spec.options.residual = residual;
  spec.options.control_variate = in;
  const SlicedCall call(spec, kSlicedRanks, 3);
  ASSERT_EQ(call.size(), 3u);
  std::size_t next = 0;
  for (std::size_t i = 0; i < call.size(); ++i) {
    const OperationSpec& slice = call.slice(i);
    EXPECT_EQ(next % 1024, 0u);
    EXPECT_EQ(slice.input.data, in.data() + next);
    EXPECT_EQ(slice.output.data, out.data() + next);
    EXPECT_EQ(slice.input.count, slice.output.count);
    EXPECT_EQ(slice.options.residual.data(), residual.data() + next);
    EXPECT_EQ(slice.options.residual.size(), slice.input.count);
    EXPECT_EQ(slice.options.control_variate.data(), in.data() + next);
    EXPECT_TRUE(validate(slice, 1, kSlicedRanks).ok());
    next += slice.input.count;
  }
  EXPECT_EQ(next, kSlicedCount);
}

TEST_F(Sliced, OfAnAllGatherEachSliceHasItsPartOfEveryBlock) {
  std::vector<float> all(kSlicedCount * kSlicedRanks);
  const OperationSpec spec{.kind = OperationKind::all_gather,
                           .input = std::span<const float>(in),
                           .output = std::span(all)};
  const SlicedCall call(spec, kSlicedRanks, 2);
  std::vector<int> covered(all.size());
  for (std::size_t i = 0; i < call.size(); ++i) {
    const OperationSpec& slice = call.slice(i);
    EXPECT_TRUE(validate(slice, 2, kSlicedRanks).ok()) << validate(slice, 2, kSlicedRanks).c_str();
    for (Rank rank = 0; rank < kSlicedRanks; ++rank) {
      ASSERT_EQ(slice.output_blocks.count(rank), slice.input.count);
      for (std::size_t k = 0; k < slice.input.count; ++k)
        ++covered[slice.output_blocks.offset(rank) + k];
    }
  }
  EXPECT_THAT(covered, ::testing::Each(1));
}

TEST_F(Sliced, OnlyWhatIsLargeAndMayBeCutIsCut) {
  OperationSpec spec = all_reduce();
  EXPECT_EQ(slices(spec), 4u);
  EXPECT_EQ(slices(spec, 1), 1u);
  EXPECT_EQ(SlicedCall::slices(spec, 1, 4, kSliceBytes), 1u);
  EXPECT_EQ(SlicedCall::slices(spec, kSlicedRanks, 8, 10'000), 4u);  // slices of 40,000 bytes
  EXPECT_EQ(SlicedCall::slices(spec, kSlicedRanks, 8, 30'000), 1u);
  spec.options.confirm_use = true;
  EXPECT_EQ(slices(spec), 1u);
  spec = all_reduce();
  spec.options.codec.codec = Codec::automatic;
  EXPECT_EQ(slices(spec), 1u);
  spec = all_reduce();
  spec.kind = OperationKind::reduce_scatter;
  EXPECT_EQ(slices(spec), 1u);
  spec.kind = OperationKind::send;
  EXPECT_EQ(slices(spec), 1u);
}

// Reports of two slices, of 2,048 and of 3,000 elements.
struct Merged : ::testing::Test {
  Merged() {
    for (Request& part : parts) {
      part.report.peers = {{.rank = 0, .expected = 10, .arrived = 9, .repaired = 1, .sent = 5},
                           {.rank = 2, .expected = 10, .arrived = 10, .sent = 6, .missed = true}};
      part.report.bytes_sent = 1'000;
      part.report.contributors = {2, 2.5, {0, 0, 2, 2}};
      part.report.times = {.gate = 1us, .reduce = 5us, .total = 9us};
    }
    parts[0].report.sequence = 7;
    outcome.submitted = {1'000};
  }
  const CollectiveReport& finish() {
    const std::array<const Request*, 2> all = {&parts[0], &parts[1]};
    call.finish(all, outcome, {21'000});
    return outcome.report;
  }

  std::vector<float> whole = std::vector<float>(2'048 + 3'000, 1.0f);
  SlicedCall call{{.kind = OperationKind::all_reduce,
                   .input = std::span<const float>(whole),
                   .output = std::span(whole)},
                  kSlicedRanks,
                  2};
  std::array<Request, 2> parts;
  Request outcome;
};

TEST_F(Merged, CountsAddAndOneSliceThatIsNotAgreedIsEnough) {
  parts[1].report.complete = false;
  parts[1].report.deadline_cut = true;
  parts[1].report.peers[1].missed = false;
  parts[1].report.elements_missing = 3;
  parts[0].report.elements_untouched = 4;
  parts[0].report.non_finite = 5;
  parts[1].report.contributions_fetched = 1;
  parts[0].report.contributions_missing = 2;
  const CollectiveReport& report = finish();
  EXPECT_TRUE(outcome.done && outcome.status.ok());
  EXPECT_EQ(report.sequence, 7u);
  EXPECT_EQ(report.lanes, 2u);
  ASSERT_EQ(report.peers.size(), 2u);
  EXPECT_EQ(report.peers[0].expected, 20u);
  EXPECT_EQ(report.peers[0].arrived, 18u);
  EXPECT_EQ(report.peers[1].sent, 12u);
  EXPECT_FALSE(report.peers[1].missed);  // some of our contribution was used
  EXPECT_DOUBLE_EQ(report.loss, 1.0 - 38.0 / 40);
  EXPECT_DOUBLE_EQ(report.loss_first_pass, 1.0 - 36.0 / 40);
  EXPECT_EQ(report.bytes_sent, 2'000u);
  EXPECT_FALSE(report.complete);
  EXPECT_TRUE(report.deadline_cut);
  EXPECT_EQ(report.elements_missing, 3u);
  EXPECT_EQ(report.elements_untouched, 4u);
  EXPECT_EQ(report.non_finite, 5u);
  EXPECT_EQ(report.contributions_fetched, 1u);
  EXPECT_EQ(report.contributions_missing, 2u);
}

TEST_F(Merged, TimesAreThoseOfTheSlowestSlice) {
  parts[1].report.times = {.gate = 2us, .reduce = 3us, .total = 4us};
  const CollectiveReport& report = finish();
  EXPECT_EQ(report.times.gate, 2us);
  EXPECT_EQ(report.times.reduce, 5us);
  EXPECT_EQ(report.times.total, 20us);  // counted from when the call was made
  EXPECT_EQ(report.times.spread, 15us);
}

TEST_F(Merged, MeansAreWeighedByWhatTheyAreOf) {
  parts[1].report.contributors = {1, 1.0, {0, 12, 0, 0}};
  parts[0].report.variance_estimate = 1.0;
  parts[0].report.noise = {.measured = true,
                           .gradient_mean_square = 4.0,
                           .quantisation_variance = 1.0,
                           .loss = 0.5,
                           .gain = 0.5};
  parts[1].report.noise = parts[0].report.noise;
  const CollectiveReport& report = finish();
  EXPECT_EQ(report.contributors.min, 1u);
  EXPECT_DOUBLE_EQ(report.contributors.mean, (4 * 2.5 + 12 * 1.0) / 16);
  EXPECT_THAT(report.contributors.histogram, ElementsAre(0u, 12u, 2u, 2u));
  EXPECT_DOUBLE_EQ(report.variance_estimate, 2'048.0 / 5'048);
  EXPECT_TRUE(report.noise.measured);
  EXPECT_DOUBLE_EQ(report.noise.gradient_mean_square, 4.0);
  EXPECT_DOUBLE_EQ(report.noise.loss, 0.5);
  EXPECT_DOUBLE_EQ(report.noise.ratio, 1.0);  // 0.5 sqrt(4 / 1)
}

TEST_F(Merged, WhatIsNotMeasuredCountsForNothing) {
  EXPECT_FALSE(finish().noise.measured);
  EXPECT_EQ(outcome.report.noise.gain, 1.0);
  parts[1].report.noise = {.measured = true, .gradient_mean_square = 9.0, .loss_variance = 1.0};
  EXPECT_DOUBLE_EQ(finish().noise.gradient_mean_square, 9.0);
  EXPECT_DOUBLE_EQ(outcome.report.noise.ratio, 3.0);
}

}  // namespace
}  // namespace leeway::collective
