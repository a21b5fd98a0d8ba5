#include "collective/replica_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;

// The ledger of rank 1 of three, each with 128 elements in blocks of 64.
ReplicaLedger ledger_of(std::uint32_t age_max) {
  return ReplicaLedger(
      {.self = 1, .size = 3, .elements = 384, .packet_elements = 64, .age_max = age_max});
}

struct Arrival {
  Rank owner;
  std::size_t block;
};

Status broadcast(ReplicaLedger& ledger, std::initializer_list<Arrival> arrivals) {
  BroadcastLedger* counted = ledger.begin_broadcast();
  for (const Arrival& arrival : arrivals) counted->arrived[arrival.owner].set(arrival.block);
  return ledger.finish_broadcast(5ms);
}

TEST(ReplicaLedger, HasABitForEachBlockOfTheOthers) {
  // 300 elements in blocks of 60 make shards of 128, 128 and 44.
  ReplicaLedger ledger({.self = 0, .size = 3, .elements = 300, .packet_elements = 60});
  const BroadcastLedger* bits = ledger.begin_broadcast();
  EXPECT_EQ(bits->required[0].size(), 0u);
  EXPECT_EQ(bits->arrived[1].size(), 3u);
  EXPECT_EQ(bits->required[2].size(), 1u);
}

TEST(ReplicaLedger, ABlockAgesUntilItArrives) {
  ReplicaLedger ledger = ledger_of(0);
  ASSERT_TRUE(broadcast(ledger, {{0, 0}, {2, 1}}).ok());
  EXPECT_EQ(ledger.age_of(0), 0u);
  EXPECT_EQ(ledger.age_of(64), 1u);
  EXPECT_EQ(ledger.age_of(256), 1u);
  EXPECT_EQ(ledger.age_of(383), 0u);
  ASSERT_TRUE(broadcast(ledger, {{2, 0}}).ok());
  EXPECT_EQ(ledger.age_of(63), 1u);
  EXPECT_EQ(ledger.age_of(127), 2u);
  EXPECT_EQ(ledger.age_of(256), 0u);
}

TEST(ReplicaLedger, OurOwnBlocksNeverAge) {
  ReplicaLedger ledger = ledger_of(0);
  ASSERT_TRUE(broadcast(ledger, {}).ok());
  EXPECT_EQ(ledger.age_of(128), 0u);
  EXPECT_EQ(ledger.age_of(255), 0u);
}

TEST(ReplicaLedger, OwnersAreThoseOfTheShards) {
  const ReplicaLedger ledger = ledger_of(0);
  EXPECT_EQ(ledger.owner_of(0), 0u);
  EXPECT_EQ(ledger.owner_of(127), 0u);
  EXPECT_EQ(ledger.owner_of(128), 1u);
  EXPECT_EQ(ledger.owner_of(383), 2u);
}

TEST(ReplicaLedger, DemandsWhatWouldBecomeOlderThanAgeMax) {
  ReplicaLedger ledger = ledger_of(2);
  for (int i = 0; i < 2; ++i) {
    const BroadcastLedger* bits = ledger.begin_broadcast();
    EXPECT_EQ(bits->required[0].count() + bits->required[2].count(), 0u) << i;
    ASSERT_TRUE(broadcast(ledger, {{0, 1}, {2, 0}, {2, 1}}).ok());
  }
  const BroadcastLedger* bits = ledger.begin_broadcast();
  EXPECT_TRUE(bits->required[0].test(0));
  EXPECT_EQ(bits->required[0].count() + bits->required[2].count(), 1u);
}

TEST(ReplicaLedger, WithoutACapNothingIsEverDemanded) {
  ReplicaLedger ledger = ledger_of(0);
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(broadcast(ledger, {}).ok());
  EXPECT_EQ(ledger.begin_broadcast()->required[0].count(), 0u);
  EXPECT_EQ(ledger.age_max_seen(), 300u);
  EXPECT_EQ(ledger.blocks_refreshed(), 0u);
}

TEST(ReplicaLedger, CountsDemandedBlocksThatArrive) {
  ReplicaLedger ledger = ledger_of(1);
  ASSERT_TRUE(broadcast(ledger, {}).ok());
  ASSERT_TRUE(broadcast(ledger, {{0, 0}, {0, 1}, {2, 0}, {2, 1}}).ok());
  EXPECT_EQ(ledger.blocks_refreshed(), 4u);
  ASSERT_TRUE(broadcast(ledger, {{0, 0}}).ok());
  // The block that came without being requested must not count.
  EXPECT_EQ(ledger.blocks_refreshed(), 4u);
  EXPECT_EQ(ledger.age_max_seen(), 1u);
}

TEST(ReplicaLedger, ADemandedBlockThatDoesNotArriveIsAnError) {
  ReplicaLedger ledger = ledger_of(1);
  ASSERT_TRUE(broadcast(ledger, {}).ok());
  const Status overdue = broadcast(ledger, {{0, 0}, {2, 0}});
  EXPECT_EQ(overdue.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(overdue.text(),
            "rank 1: broadcast_parameters: block 1 of rank 0 is 2 versions old and could not "
            "be refreshed (deadline 5 ms)");
  EXPECT_EQ(ledger.age_of(0), 0u);  // blocks that did arrive count
  EXPECT_EQ(ledger.age_of(64), 2u);
  EXPECT_TRUE(broadcast(ledger, {{0, 0}, {0, 1}, {2, 0}, {2, 1}}).ok());
}

TEST(ReplicaLedger, HistogramCountsBlockSteps) {
  ReplicaLedger ledger = ledger_of(0);
  ASSERT_TRUE(broadcast(ledger, {{0, 0}, {2, 1}}).ok());
  ASSERT_TRUE(broadcast(ledger, {{0, 0}, {0, 1}, {2, 1}}).ok());
  ASSERT_EQ(ledger.age_histogram().size(), ReplicaLedger::kAgeBins);
  EXPECT_EQ(ledger.age_histogram()[0], 5u);
  EXPECT_EQ(ledger.age_histogram()[1], 2u);
  EXPECT_EQ(ledger.age_histogram()[2], 1u);
  EXPECT_EQ(ledger.age_mean(), 4.0 / 8);
}

TEST(ReplicaLedger, TheLastBinHoldsAllHigherAges) {
  ReplicaLedger ledger = ledger_of(0);
  for (int i = 0; i < 260; ++i) ASSERT_TRUE(broadcast(ledger, {}).ok());
  EXPECT_EQ(ledger.age_histogram().back(), 4u * 6);  // ages 255 to 260
}

TEST(ReplicaLedger, MeanAgeBeforeTheFirstBroadcastIsZero) {
  EXPECT_EQ(ledger_of(0).age_mean(), 0.0);
}

TEST(ParameterPacketElements, AreWhatADatagramCarries) {
  const std::uint32_t fp32 = parameter_packet_elements(Codec::fp32, 1472);
  const std::uint32_t bf16 = parameter_packet_elements(Codec::bf16, 1472);
  EXPECT_GT(fp32, 300u);
  EXPECT_LE(fp32 * 4, 1472u);
  EXPECT_GT(bf16, fp32 * 3 / 2);
  EXPECT_LE(bf16 * 2, 1472u);
}

}  // namespace
}  // namespace leeway::collective
