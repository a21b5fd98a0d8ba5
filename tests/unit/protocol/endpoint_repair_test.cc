// Tests losses, copies and overtaking, one kind of datagram at a time. Exact data must become
// complete and be summed once.
#include <gtest/gtest.h>

#include <map>

#include "support/arrival_record.h"
#include "support/datagram_view.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using collective::OperationKind;
using collective::OperationSpec;
using testing::data_header_of;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;
using testing::type_of;

const EndpointCounters& repair_counters(EngineGroup& group, Rank rank) {
  return group.engine(rank).endpoint().counters();
}

class LostControl : public ::testing::TestWithParam<wire::PacketType> {};

TEST_P(LostControl, TheFirstOnesOfEveryLinkAreMadeGood) {
  for (const int lost : {1, 3, 10}) {
    for (const std::size_t count : {100, 40000}) {
      GroupOptions options{.size = 4};
      options.faults.loss = 0.05;
      EngineGroup group(options);
      std::map<std::pair<Rank, Rank>, int> seen;
      group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
        return type_of(datagram) != GetParam() || ++seen[{from, to}] > lost;
      };
      FloatAllReduce call(4, count);
      call.submit_all(group);
      EXPECT_TRUE(call.finish(group, 10s)) << lost << " lost, " << count << " elements";
      EXPECT_TRUE(group.settle());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, LostControl,
                         ::testing::Values(wire::PacketType::report, wire::PacketType::end,
                                           wire::PacketType::repair),
                         [](const auto& row) {
                           return row.param == wire::PacketType::report ? "Reports"
                                  : row.param == wire::PacketType::end  ? "Ends"
                                                                        : "RepairRequests";
                         });

TEST(EndpointRepair, ServesACopyOfARequestOnce) {
  EngineGroup group(GroupOptions{.size = 2});
  std::uint64_t lost = 0;
  group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
    if (type_of(datagram) == wire::PacketType::repair)
      group.inject(to, from, testing::copy_of(datagram));
    const auto header = data_header_of(datagram);
    if (!header || header->attempt > 0 || header->index.value % 10 != 4) return true;
    ++lost;
    return false;
  };
  FloatAllReduce call(2, 100000);
  call.submit_all(group);
  ASSERT_TRUE(call.finish(group));
  EXPECT_GT(repair_counters(group, 0).repair_requests, 1u);
  EXPECT_EQ(repair_counters(group, 0).repairs_sent + repair_counters(group, 1).repairs_sent, lost);
}

TEST(EndpointRepair, ResendsOnlyWhatWasLost) {
  EngineGroup group(GroupOptions{.size = 2});
  std::uint64_t lost = 0;
  group.filter = [&](Rank, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (!header || header->attempt > 0 || header->index.value % 10 != 4) return true;
    ++lost;
    return false;
  };
  FloatAllReduce call(2, 100000);
  call.submit_all(group);
  ASSERT_TRUE(call.finish(group));
  EXPECT_GT(lost, 10u);
  EXPECT_EQ(repair_counters(group, 0).repairs_sent + repair_counters(group, 1).repairs_sent, lost);
  EXPECT_EQ(call.report(0).peers[0].repaired + call.report(1).peers[0].repaired, lost);
  EXPECT_EQ(call.report(0).loss, 0.0);
  EXPECT_GT(call.report(0).loss_first_pass, 0.05);
}

TEST(EndpointRepair, SurvivesHeavyLossOfEverything) {
  for (const double loss : {0.5, 0.7}) {
    GroupOptions options{.size = 3};
    options.faults.loss = loss;
    EngineGroup group(options);
    FloatAllReduce call(3, 20000);
    call.submit_all(group);
    EXPECT_TRUE(call.finish(group)) << loss;
  }
}

TEST(EndpointBounded, RepairsUntilTheLossIsBelowTheBoundAndNoFurther) {
  GroupOptions options{.size = 4};
  options.faults.loss = 0.3;
  EngineGroup group(options);
  FloatAllReduce call(4, 100000, bounded(0.1, 10s));
  call.submit_all(group);
  ASSERT_TRUE(group.run(call.requests()));
  std::uint64_t repaired = 0, missing = 0;
  for (Rank rank = 0; rank < 4; ++rank) {
    std::size_t sender = 0;
    for (const PeerReport& row : call.report(rank).peers) {
      // The spread half is exact, so all missing packets are of the reduce half.
      const std::uint64_t reduce = (row.expected + 1) / 2;
      EXPECT_LE(static_cast<double>(row.expected - row.arrived), 0.1 * reduce + 0.1)
          << rank << " from " << sender++;
      repaired += row.repaired;
      missing += row.expected - row.arrived;
    }
    EXPECT_TRUE(call.report(rank).complete);
  }
  EXPECT_GT(repaired, 0u);
  EXPECT_GT(missing, 0u) << "one request leaves 9 %, which is enough";
}

TEST(EndpointBounded, AsksForNothingWhenTheFirstPassWasGoodEnough) {
  GroupOptions options{.size = 2};
  EngineGroup group(options);
  group.filter = [](Rank, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    return !(header && header->kind == wire::FlowKind::reduce && header->attempt == 0 &&
             header->index.value % 20 == 3);
  };
  FloatAllReduce call(2, 100000, bounded(0.1, 10s));
  call.submit_all(group);
  ASSERT_TRUE(group.run(call.requests()));
  EXPECT_EQ(repair_counters(group, 0).repair_requests + repair_counters(group, 1).repair_requests,
            0u);
  EXPECT_GT(call.report(0).loss, 0.01);
}

TEST(EndpointRequired, PacketsThatMustComeAreRepairedAndOthersAreNot) {
  constexpr int kSize = 3;
  constexpr std::size_t kCount = 60000;
  GroupOptions options{.size = kSize};
  options.faults.loss = 0.5;
  EngineGroup group(options);
  testing::ArrivalRecord record(group);
  std::array<std::vector<float>, kSize> data;
  std::array<collective::BroadcastLedger, kSize> ledgers;
  const auto requests = group.submit_all([&](Rank rank) {
    data[rank].assign(kCount, static_cast<float>(rank));
    collective::BroadcastLedger& ledger = ledgers[rank];
    ledger.required.assign(kSize, Bitmap(100));
    ledger.arrived.assign(kSize, Bitmap(100));
    for (Rank owner = 0; owner < kSize; ++owner) {
      for (std::size_t i = 0; i < 57; i += 4) ledger.required[owner].set(i);
    }
    OperationSpec spec{.kind = OperationKind::replica_broadcast, .ledger = &ledger};
    spec.input = spec.output = std::span(data[rank]);
    spec.options.delivery = best_effort(10s);
    return spec;
  });
  ASSERT_TRUE(group.run(requests));
  std::uint32_t missing = 0;
  for (Rank rank = 0; rank < kSize; ++rank) {
    EXPECT_TRUE(requests[rank]->status.ok());
    for (Rank owner = 0; owner < kSize; ++owner) {
      if (owner == rank) continue;
      for (std::uint32_t i = 0; i < 57; ++i) {
        const bool arrived = ledgers[rank].arrived[owner].test(i);
        if (ledgers[rank].required[owner].test(i)) {
          EXPECT_TRUE(arrived) << i;
        } else {
          EXPECT_EQ(arrived,
                    record.copies(0, wire::FlowKind::spread, owner, rank, i).first_pass_arrived > 0)
              << i;
          EXPECT_LE(record.copies(0, wire::FlowKind::spread, owner, rank, i).sent, 1);
        }
        missing += !arrived;
      }
    }
    EXPECT_FALSE(requests[rank]->report.complete);
  }
  EXPECT_GT(missing, 50u);
}

TEST(EndpointRequired, WhatMustComeDoesHoweverLooseTheBound) {
  GroupOptions options{.size = 2};
  options.faults.loss = 0.3;
  EngineGroup group(options);
  std::array<std::vector<float>, 2> data;
  std::array<collective::BroadcastLedger, 2> ledgers;
  const auto requests = group.submit_all([&](Rank rank) {
    data[rank].assign(20000, static_cast<float>(rank));
    ledgers[rank].required.assign(2, Bitmap(100));
    ledgers[rank].arrived.assign(2, Bitmap(100));
    for (std::size_t i = 0; i < 28; i += 4) ledgers[rank].required[1 - rank].set(i);
    OperationSpec spec{.kind = OperationKind::replica_broadcast, .ledger = &ledgers[rank]};
    spec.input = spec.output = std::span(data[rank]);
    spec.options.delivery = {Delivery::Kind::bounded, 1.0, 10s};
    return spec;
  });
  ASSERT_TRUE(group.run(requests));
  for (Rank rank = 0; rank < 2; ++rank) {
    for (std::size_t i = 0; i < 28; i += 4)
      EXPECT_TRUE(ledgers[rank].arrived[1 - rank].test(i)) << i;
  }
}

// Rank 0 repeats its END more and more rarely until rank 1 opens the operation. After that, an END
// must come soon.
TEST(EndpointEnd, IsRepeatedSoonForAPeerThatOpensLate) {
  EngineGroup group(GroupOptions{.size = 2, .delay = 1ms});
  bool opened = false;
  group.filter = [&](Rank from, Rank, ByteSpan) { return opened || from != 0; };
  FloatAllReduce call(2, 1000);
  call.submit(group, 0);
  group.run_until([] { return false; }, 9700ms);
  opened = true;
  call.submit(group, 1);
  EXPECT_TRUE(call.finish(group, 400ms));
}

TEST(EndpointDuplicate, CopiesOfEverythingChangeNothingButTheCount) {
  GroupOptions options{.size = 3};
  options.faults.duplicate = 1.0;
  EngineGroup group(options);
  FloatAllReduce call(3, 50000);
  call.submit_all(group);
  ASSERT_TRUE(call.finish(group));
  EXPECT_TRUE(group.settle());
  group.run_until([] { return false; }, 10ms);
  for (Rank rank = 0; rank < 3; ++rank) {
    const EndpointCounters& c = repair_counters(group, rank);
    std::uint64_t arrived = 0;
    for (const PeerReport& row : call.report(rank).peers) arrived += row.arrived;
    EXPECT_EQ(c.data_received, 2 * arrived);
    EXPECT_EQ(c.duplicate + c.late + c.closed_round, arrived);
    EXPECT_GT(c.duplicate, arrived / 2);
  }
}

TEST(EndpointReorder, OvertakingChangesNothing) {
  GroupOptions options{.size = 3};
  options.faults.reorder = 0.5;
  EngineGroup group(options);
  FloatAllReduce call(3, 50000);
  call.submit_all(group);
  ASSERT_TRUE(call.finish(group));
  EXPECT_EQ(call.report(0).loss, 0.0);
}

// The network loses, doubles, reorders and damages datagrams.
TEST(EndpointConservation, EveryDatagramThatArrivesIsCountedOnce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    GroupOptions options{.size = 4, .seed = seed};
    options.faults = {.loss = 0.1, .duplicate = 0.1, .reorder = 0.2, .corrupt = 0.05, .seed = seed};
    EngineGroup group(options);
    const Delivery delivery = seed % 3 == 0   ? exact()
                              : seed % 3 == 1 ? best_effort(10s)
                                              : bounded(0.02, 10s);
    FloatAllReduce call(4, 30000, delivery);
    call.submit_all(group);
    ASSERT_TRUE(group.run(call.requests()));
    ASSERT_TRUE(group.settle());
    group.run_until([] { return false; }, 10ms);
    for (Rank rank = 0; rank < 4; ++rank) {
      const EndpointCounters& c = repair_counters(group, rank);
      std::uint64_t arrived = 0;
      for (const PeerReport& row : call.report(rank).peers) {
        arrived += row.arrived;
        EXPECT_LE(row.arrived, row.expected);
      }
      EXPECT_EQ(c.data_received, arrived + c.duplicate + c.late + c.closed_round + c.early_dropped)
          << "seed " << seed;
      EXPECT_EQ(c.refused_plan + c.future_round + c.refused_report, 0u);
      EXPECT_GT(c.refused[static_cast<int>(wire::Refusal::checksum)], 0u);
    }
    if (delivery.kind == Delivery::Kind::exact) {
      EXPECT_TRUE(call.holds_sum()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace leeway::protocol
