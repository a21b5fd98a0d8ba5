// Tests copies of short flows in place of repair (WIRE 2.12).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "support/datagram_view.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using testing::data_header_of;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;
using testing::type_of;

constexpr std::size_t kShort = 600;    // elements: a packet for either of two owners
constexpr std::size_t kLonger = 1300;  // two packets

// Ranks whose links have lost a tenth of their data, and lose nothing from now on.
struct LossyGroup {
  explicit LossyGroup(int size = 2, bool paced = true) : group({.size = size, .paced = paced}) {
    int count = 0;
    group.filter = [&](Rank, Rank, ByteSpan datagram) {
      return type_of(datagram) != wire::PacketType::data || ++count % 10 != 0;
    };
    for (int call = 0; call < 4; ++call) EXPECT_TRUE(run(100'000));
    group.filter = nullptr;
  }
  ::testing::AssertionResult run(std::size_t count, Delivery delivery = exact()) {
    return FloatAllReduce::run(group, count, delivery);
  }
  std::uint64_t data_sent_in(std::size_t count, Delivery delivery = exact()) {
    const auto before = counters(0).data_sent;
    EXPECT_TRUE(run(count, delivery));
    return counters(0).data_sent - before;
  }
  const EndpointCounters& counters(Rank rank) { return group.engine(rank).endpoint().counters(); }

  EngineGroup group;
};

TEST(EndpointCopies, OneThatArrivesIsEnough) {
  LossyGroup ranks;
  const auto requests = ranks.counters(1).requests_sent;
  std::set<wire::FlowKind> seen;
  ranks.group.filter = [&](Rank, Rank to, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    return to != 1 || !header || !seen.insert(header->kind).second;
  };
  EXPECT_TRUE(ranks.run(kShort));
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_EQ(ranks.counters(1).requests_sent, requests);
}

TEST(EndpointCopies, TheLastOneEndsThePass) {
  LossyGroup ranks;
  std::map<wire::FlowKind, std::vector<wire::DataHeader>> sent;
  ranks.group.filter = [&](Rank from, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (header && from == 0) sent[header->kind].push_back(*header);
    return true;
  };
  EXPECT_TRUE(ranks.run(kLonger));
  ASSERT_EQ(sent.size(), 2u);
  for (const auto& [kind, packets] : sent) {
    EXPECT_GT(packets.size(), 2u);
    for (std::size_t i = 0; i < packets.size(); ++i) {
      EXPECT_EQ(packets[i].position.value, i % 2);
      EXPECT_EQ(packets[i].index, packets[i % 2].index) << "every copy is in the same order";
      EXPECT_EQ(packets[i].attempt, 0);
      EXPECT_EQ(packets[i].goes_on, i % 2 == 1 && i + 1 < packets.size());
    }
  }
}

// The last copy's end mark must count although its packet has already come.
TEST(EndpointCopies, TheEndOfTheLastOneIsHeardWhereItsPacketIsHeld) {
  LossyGroup ranks;
  const auto requests = ranks.counters(1).requests_sent;
  ranks.group.filter = [&](Rank, Rank to, ByteSpan datagram) {
    if (type_of(datagram) == wire::PacketType::end) return false;
    const auto header = data_header_of(datagram);
    return to != 1 || !header || header->attempt > 0 || header->position.value > 0;
  };
  EXPECT_TRUE(ranks.run(kLonger));
  EXPECT_GT(ranks.counters(1).requests_sent, requests);
}

// Rank 1 has not opened the operation. It must keep only the copy that ends the pass.
TEST(EndpointCopies, TheyTakeOnePlaceWhereTheyComeTooEarly) {
  LossyGroup ranks;
  const auto dropped = ranks.counters(1).early_dropped;
  ranks.group.filter = [&](Rank, Rank to, ByteSpan datagram) {
    if (type_of(datagram) == wire::PacketType::end) return false;
    const auto header = data_header_of(datagram);
    return to != 1 || !header || header->attempt > 0 || header->position.value > 0;
  };
  FloatAllReduce first(2, kLonger);
  FloatAllReduce second(2, kLonger);
  first.submit(ranks.group, 0);
  second.submit(ranks.group, 0);
  ranks.group.run_until([] { return false; }, 10ms);
  first.submit(ranks.group, 1);
  second.submit(ranks.group, 1);
  EXPECT_TRUE(first.finish(ranks.group, 10s));
  EXPECT_TRUE(second.finish(ranks.group, 10s));
  EXPECT_EQ(ranks.counters(1).early_dropped, dropped);
}

// A burst on the way to one rank should hit only one copy. So waiting datagrams to other ranks go
// between the copies.
TEST(EndpointCopies, TheyLeaveBehindWhatOtherRanksAreSent) {
  LossyGroup ranks(3);
  std::vector<Rank> order;
  ranks.group.filter = [&](Rank from, Rank to, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (from == 0 && header && header->kind == wire::FlowKind::reduce) order.push_back(to);
    return true;
  };
  EXPECT_TRUE(ranks.run(3 * 2 * 352));  // two full packets for each owner
  ASSERT_GT(order.size(), 6u);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_NE(order[i], order[i - 2]) << i;
}

TEST(EndpointCopies, NoneLeaveWherePacketsMayBeMissing) {
  LossyGroup ranks;
  EXPECT_GT(ranks.data_sent_in(kShort), 2u);
  FloatAllReduce call(2, kShort, best_effort(1s));
  std::map<wire::FlowKind, int> sent;
  ranks.group.filter = [&](Rank from, Rank, ByteSpan datagram) {
    const auto header = data_header_of(datagram);
    if (from == 0 && header) ++sent[header->kind];
    return true;
  };
  call.submit_all(ranks.group);
  EXPECT_TRUE(call.finish(ranks.group));
  EXPECT_EQ(sent[wire::FlowKind::reduce], 1);
  EXPECT_GT(sent[wire::FlowKind::spread], 1) << "which is exact";
}

TEST(EndpointCopies, NoneLeaveWhereThePaceIsNotHeld) {
  LossyGroup ranks(2, /*paced=*/false);
  EXPECT_EQ(ranks.data_sent_in(kShort), 2u);
}

TEST(EndpointCopies, NoneLeaveWhereNothingIsLost) {
  EngineGroup group({.size = 2, .paced = true});
  FloatAllReduce call(2, kShort);
  call.submit_all(group);
  EXPECT_TRUE(call.finish(group));
  EXPECT_EQ(group.engine(0).endpoint().counters().data_sent, 2u);
}

// Four packets to each of 17 ranks are 68. Copies of more than 64 would take longer than a repair
// request, so none are made.
TEST(EndpointCopies, NoneLeaveToManyRanks) {
  constexpr int kRanks = 18;
  LossyGroup ranks(kRanks);
  EXPECT_EQ(ranks.data_sent_in(kRanks * 4 * 340), 2u * 4 * (kRanks - 1));
  EXPECT_GT(ranks.data_sent_in(kRanks * 3 * 340), 2u * 3 * (kRanks - 1));
}

}  // namespace
}  // namespace leeway::protocol
