#include "endpoint/ring_plan.h"

#include <gtest/gtest.h>

namespace leeway::sim {
namespace {

TEST(RingPlan, ASuccessorGetsWhatItsPredecessorSends) {
  for (const CallKind kind : {CallKind::all_reduce, CallKind::reduce_scatter, CallKind::all_gather,
                              CallKind::broadcast}) {
    const std::uint32_t ranks = 5;
    for (std::uint32_t rank = 0; rank + 1 < ranks; ++rank) {
      const RingPlan from = *RingPlan::make(kind, 10'000'012, rank, ranks);
      const RingPlan to = *RingPlan::make(kind, 10'000'012, rank + 1, ranks);
      ASSERT_EQ(from.slices_out(), to.slices_in()) << to_string(kind);
      for (std::uint64_t slice = 0; slice < from.slices_out(); ++slice) {
        EXPECT_EQ(from.bytes_out(slice), to.bytes_in(slice)) << to_string(kind) << slice;
      }
    }
  }
}

TEST(RingPlan, AllReduceMovesTheTensorTwiceLessARanksShare) {
  const RingPlan plan = *RingPlan::make(CallKind::all_reduce, 4 << 20, 1, 4);
  EXPECT_EQ(plan.total_bytes_in(), 6u << 20);
  EXPECT_TRUE(plan.reduces());
  EXPECT_EQ(RingPlan::make(CallKind::reduce_scatter, 4 << 20, 1, 4)->total_bytes_in(), 3u << 20);
  EXPECT_EQ(RingPlan::make(CallKind::all_gather, 4 << 20, 1, 4)->total_bytes_in(), 3u << 20);
}

TEST(RingPlan, ChunksDifferByAnElementAtMostAndSumToTheTensor) {
  const RingPlan plan = *RingPlan::make(CallKind::all_gather, 4 * 1003, 0, 4);
  EXPECT_EQ(plan.total_bytes_in() + plan.bytes_out(0) + plan.bytes_out(1), 4u * 1003);
}

TEST(RingPlan, OwnChunkGoesFirstThenWhatCame) {
  const RingPlan plan = *RingPlan::make(CallKind::all_reduce, 4 << 20, 1, 4);
  EXPECT_EQ(plan.slices_out(), 12u);
  EXPECT_EQ(plan.ready(0), 2u);
  EXPECT_EQ(plan.ready(3), 5u);
  EXPECT_EQ(plan.ready(12), 12u);
}

TEST(RingPlan, BroadcastIsAPipelineFromRankZero) {
  const RingPlan first = *RingPlan::make(CallKind::broadcast, 8 << 20, 0, 3);
  const RingPlan middle = *RingPlan::make(CallKind::broadcast, 8 << 20, 1, 3);
  const RingPlan last = *RingPlan::make(CallKind::broadcast, 8 << 20, 2, 3);
  EXPECT_EQ(first.slices_in(), 0u);
  EXPECT_EQ(first.ready(0), 8u);
  EXPECT_EQ(middle.ready(0), 0u);
  EXPECT_EQ(middle.ready(3), 3u);
  EXPECT_EQ(last.slices_out(), 0u);
  EXPECT_EQ(last.total_bytes_in(), 8u << 20);
}

TEST(RingPlan, NoneForOtherKinds) {
  EXPECT_FALSE(RingPlan::make(CallKind::all_to_all, 4096, 0, 4));
  EXPECT_FALSE(RingPlan::make(CallKind::replica_reduce, 4096, 0, 4));
  EXPECT_FALSE(RingPlan::make(CallKind::replica_broadcast, 4096, 0, 4));
}

}  // namespace
}  // namespace leeway::sim
