#include "near/caller.h"

#include <gtest/gtest.h>

#include <random>

#include "codec/reduce.h"
#include "support/reference_call.h"
#include "unit/near/ranks.h"

namespace leeway::near {
namespace {

using collective::OperationKind;
using collective::OperationSpec;
using leeway::testing::CallShape;
using leeway::testing::ReferenceCall;

void expect_right(Ranks& ranks, const CallShape& shape) {
  ReferenceCall call(shape);
  std::vector<CollectiveReport> reports(static_cast<std::size_t>(shape.size));
  ranks.each([&](Rank rank) {
    for (const OperationSpec& spec : call.specs(rank)) {
      ASSERT_TRUE(takes(spec));
      const auto outcome =
          ranks.caller(rank).run(spec, ranks.next_number(rank), ranks.now(), reports[rank]);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.c_str();
      ASSERT_EQ(outcome.way, Caller::Way::here);
    }
  });
  EXPECT_TRUE(call.check()) << to_string(shape.kind) << " of " << shape.count << " "
                            << to_string(shape.dtype) << " by " << shape.size << " ranks, "
                            << to_string(shape.options.op) << (shape.in_place ? " in place" : "");
}

// Numbers of elements. A slot has room for 4 KiB, that is 1,024 floats. So there are calls of one
// chunk, calls of several chunks, and last chunks that are not full.
constexpr std::array<std::size_t, 6> kCounts = {0, 1, 15, 1000, 3000, 10'000};

class EveryMove : public ::testing::TestWithParam<OperationKind> {};

TEST_P(EveryMove, IsRightForAllSizesAndRanks) {
  for (const int size : {2, 3, 5}) {
    Ranks ranks(size);
    for (const std::size_t count : kCounts) {
      for (const bool in_place : {false, true}) {
        if (in_place && GetParam() == OperationKind::all_to_all) continue;
        expect_right(ranks, {.kind = GetParam(),
                             .dtype = DataType::f32,
                             .size = size,
                             .count = count,
                             .root = static_cast<Rank>(size - 1),
                             .in_place = in_place});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryMove,
                         ::testing::Values(OperationKind::all_reduce, OperationKind::reduce_scatter,
                                           OperationKind::all_gather, OperationKind::broadcast,
                                           OperationKind::reduce, OperationKind::gather,
                                           OperationKind::scatter, OperationKind::all_to_all,
                                           OperationKind::barrier),
                         [](const auto& of) { return to_string(of.param); });

TEST(CallerSums, EveryTypeAndReduction) {
  Ranks ranks(3);
  for (int type = 0; type < kDataTypeCount; ++type) {
    for (int op = 0; op < kReduceOpCount; ++op) {
      CallShape shape{.dtype = static_cast<DataType>(type), .size = 3};
      shape.options.op = static_cast<ReduceOp>(op);
      if (!codec::is_defined(shape.options.op, shape.dtype)) continue;
      for (const std::size_t count : {7u, 5000u}) {
        shape.count = count;
        expect_right(ranks, shape);
      }
    }
  }
}

TEST(CallerRun, MixedCallsFollowEachOther) {
  Ranks ranks(4);
  std::uint64_t state = 1;
  constexpr std::array kKinds = {OperationKind::all_reduce,     OperationKind::all_gather,
                                 OperationKind::reduce_scatter, OperationKind::barrier,
                                 OperationKind::broadcast,      OperationKind::all_to_all};
  for (int i = 0; i < 200; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    expect_right(ranks, {.kind = kKinds[(state >> 33) % kKinds.size()],
                         .size = 4,
                         .count = (state >> 40) % 4000,
                         .root = static_cast<Rank>((state >> 20) % 4)});
  }
}

// Ranks do not wait for each other between calls. So a rank may begin a call while its peers are
// still busy with the call before, and must not spoil their results.
TEST(CallerRun, RanksThatRunAheadSpoilNothing) {
  constexpr int kCalls = 300;
  Ranks ranks(3);
  ranks.each([&](Rank rank) {
    for (int i = 0; i < kCalls; ++i) {
      const std::size_t count = i % 3 == 0 ? 10 : 2500;
      std::vector<float> values(count, static_cast<float>(rank + i));
      const auto outcome = ranks.run(rank, all_reduce_of(values));
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.c_str();
      for (const float value : values) ASSERT_EQ(value, static_cast<float>(3 * i + 3)) << i;
    }
  });
}

TEST(CallerRun, ReportsWhatADatagramCallReports) {
  Ranks ranks(2, 4096);
  std::vector<CollectiveReport> reports(2);
  for (std::uint64_t call = 0; call < 2; ++call) {
    ranks.each([&](Rank rank) {
      std::vector<float> values(3000, 1.0f);
      reports[rank] = {};
      ASSERT_TRUE(
          ranks.caller(rank)
              .run(all_reduce_of(values), ranks.next_number(rank), ranks.now(), reports[rank])
              .status.ok());
    });
    for (const CollectiveReport& report : reports) {
      EXPECT_EQ(report.sequence, call);
      ASSERT_EQ(report.peers.size(), 1u);
      EXPECT_EQ(report.peers[0].expected, 3u);
      EXPECT_EQ(report.peers[0].arrived, 3u);
      EXPECT_EQ(report.contributors.min, 2u);
      EXPECT_EQ(report.contributors.mean, 2.0);
      ASSERT_EQ(report.contributors.histogram.size(), 3u);
      EXPECT_EQ(report.contributors.histogram[2], 3u);
      EXPECT_EQ(report.owners, 2u);
      EXPECT_EQ(report.loss, 0.0);
      EXPECT_TRUE(report.complete);
    }
  }
  EXPECT_EQ(reports[1].peers[0].rank, 0);
}

TEST(CallerRun, FollowsARankThatTakesTheCallElsewhere) {
  for (const bool before : {true, false}) {
    Ranks ranks(3);
    if (before) ranks.go_elsewhere(1);
    std::thread other([&] {
      if (before) return;
      ranks.await(0, progress_of(1, 1));
      ranks.await(2, progress_of(1, 1));
      ranks.go_elsewhere(1);
    });
    Ranks::each({0, 2}, [&](Rank rank) {
      std::vector<float> values(3000, 1.0f);
      const auto outcome = ranks.run(rank, all_reduce_of(values));
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.c_str();
      EXPECT_EQ(outcome.way, Caller::Way::elsewhere);
      EXPECT_EQ(values[0], 1.0f) << "nothing was done";
      EXPECT_EQ(ranks.caller(rank).counters().elsewhere, 1u);
    });
    other.join();
    expect_right(ranks, {.size = 3, .count = 3000});
  }
}

// Each rank makes some calls in memory and gives all other calls to datagrams, at random. Ranks
// must agree on the way of each call.
TEST(CallerRun, StaysInStepWhereRanksTakeCallsElsewhere) {
  constexpr std::uint64_t kCalls = 400;
  std::mt19937_64 random(3);
  // One bit for each rank that gives the call to datagrams.
  std::array<std::uint64_t, kCalls> who;
  for (auto& ranks : who) ranks = random() % 3 == 0 ? random() % 8 : random() % 2 * 7;
  Ranks ranks(3);
  ranks.each([&](Rank rank) {
    for (std::uint64_t i = 0; i < kCalls; ++i) {
      if (who[i] >> rank & 1) {
        ranks.go_elsewhere(rank);
        continue;
      }
      const std::size_t count = i % 3 == 0 ? 10 : 2500;
      std::vector<float> values(count, static_cast<float>(rank + i));
      const auto outcome = ranks.run(rank, all_reduce_of(values));
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.c_str();
      ASSERT_EQ(outcome.way, who[i] == 0 ? Caller::Way::here : Caller::Way::elsewhere) << i;
      const auto sum = static_cast<float>(who[i] == 0 ? 3 * i + 3 : rank + i);
      for (const float value : values) ASSERT_EQ(value, sum) << i;
    }
  });
}

TEST(CallerRun, IsApartForAllWhereOneRankNeedsIt) {
  Ranks ranks(3);
  ranks.each([&](Rank rank) {
    std::vector<float> values(3000, 1.0f);
    OperationSpec spec = all_reduce_of(values);
    spec.options.op = ReduceOp::avg;
    if (rank == 1) spec.options.weight = 2.0;
    const auto outcome = ranks.run(rank, spec);
    EXPECT_TRUE(outcome.status.ok());
    EXPECT_EQ(outcome.way, Caller::Way::apart);
    EXPECT_EQ(values[0], 1.0f) << "nothing was done";
    EXPECT_EQ(ranks.caller(rank).counters().apart, 1u);
  });
  expect_right(ranks, {.size = 3, .count = 3000});
}

}  // namespace
}  // namespace leeway::near
