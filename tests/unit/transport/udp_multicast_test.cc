// Tests multicast over real sockets on loopback, with several ranks of one host in one group.
#include <gtest/gtest.h>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

constexpr int kRanks = 3;

// Returns a group that no other process uses: its port was free a moment ago, and its address is
// for use inside a site.
UdpAddress free_group(const char* address) {
  const auto probe = UdpTransport::open({}).value();
  return {asio::ip::make_address(address), probe->local_address().port()};
}

struct Case {
  const char* bind;
  const char* group;
  bool offload;
};

class UdpMulticast : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    UdpOptions options;
    options.bind_address = asio::ip::make_address(GetParam().bind);
    options.use_gso = options.use_gro = GetParam().offload;
    if (!UdpTransport::open(options).ok())
      GTEST_SKIP() << "this host has no address " << GetParam().bind;
    ranks_ = make_udp_group(kRanks, options);
    for (Rank rank = 0; rank < kRanks; ++rank) {
      EXPECT_FALSE(ranks_[rank]->limits().multicast);
      if (const Status joined = ranks_[rank]->join_multicast(group_, rank); !joined.ok())
        GTEST_SKIP() << joined.c_str();
      EXPECT_TRUE(ranks_[rank]->limits().multicast);
    }
    // Linux routes IPv4 multicast over loopback by default, but IPv6 multicast only if told to.
    const OwnedTrain first(kEveryRank, 600, pattern(600));
    send_one(*ranks_[0], first.train);
    if (ranks_[0]->counters().send_errors > 0)
      GTEST_SKIP() << "no route for " << GetParam().group << " from " << GetParam().bind;
    for (const Rank rank : {1, 2}) ASSERT_EQ(receive_all(*ranks_[rank], 1).size(), 1u);
  }

  UdpAddress group_ = free_group(GetParam().group);
  std::vector<std::unique_ptr<UdpTransport>> ranks_;
};

TEST_P(UdpMulticast, EveryOtherRankGetsOneSendingAndTheSenderNone) {
  const OwnedTrain train(kEveryRank, 1472, pattern(20 * 1472 + 9), {100, 3000});
  ASSERT_EQ(send_one(*ranks_[1], train.train), 1u);
  for (const Rank rank : {0, 2}) {
    const std::vector<Bytes> arrived = receive_all(*ranks_[rank], train.datagrams());
    ASSERT_EQ(arrived.size(), train.datagrams());
    for (std::size_t i = 0; i < arrived.size(); ++i)
      EXPECT_EQ(arrived[i], bytes_of(train.datagram(i))) << i;
  }
  std::vector<Received> out(64);
  EXPECT_EQ(ranks_[1]->receive(out), 0u) << "what a rank sends to all comes back to it";
  EXPECT_EQ(ranks_[1]->counters().datagrams_sent, train.datagrams()) << "once, not by receiver";
  EXPECT_EQ(ranks_[1]->counters().from_strangers, 0u);
}

TEST_P(UdpMulticast, BothSocketsAreHeardAndTheSenderIsTold) {
  const OwnedTrain to_all(kEveryRank, 600, pattern(600, 1));
  const OwnedTrain to_one(2, 700, pattern(700, 2));
  ASSERT_EQ(send_one(*ranks_[0], to_all.train), 1u);
  ASSERT_EQ(send_one(*ranks_[1], to_one.train), 1u);
  std::vector<Bytes> arrived;
  std::vector<Received> out(8);
  for (int turn = 0; turn < 1000 && arrived.size() < 2; ++turn) {
    ranks_[2]->wait(std::chrono::seconds(1));
    const std::size_t count = ranks_[2]->receive(out);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(out[i].from, out[i].bytes.size() == 600 ? 0 : 1);
      arrived.push_back(bytes_of(out[i].bytes));
    }
  }
  EXPECT_EQ(arrived.size(), 2u);
}

TEST_P(UdpMulticast, StrangersInTheGroupAreRefused) {
  UdpOptions options;
  options.bind_address = asio::ip::make_address(GetParam().bind);
  const auto stranger = UdpTransport::open(options).value();
  std::vector<UdpAddress> own{stranger->local_address()};
  ASSERT_TRUE(stranger->set_peers(own).ok());
  ASSERT_TRUE(stranger->join_multicast(group_, 0).ok());
  const OwnedTrain train(kEveryRank, 600, pattern(600));
  ASSERT_EQ(send_one(*stranger, train.train), 1u);
  std::vector<Received> out(8);
  for (int turn = 0; turn < 100 && ranks_[0]->counters().from_strangers == 0; ++turn) {
    ranks_[0]->wait(std::chrono::milliseconds(100));
    EXPECT_EQ(ranks_[0]->receive(out), 0u);
  }
  EXPECT_EQ(ranks_[0]->counters().from_strangers, 1u);
}

INSTANTIATE_TEST_SUITE_P(Families, UdpMulticast,
                         testing::Values(Case{"127.0.0.1", "239.195.1.2", true},
                                         Case{"127.0.0.1", "239.195.1.3", false},
                                         Case{"::1", "ff05::4c57:1", true}),
                         [](const testing::TestParamInfo<Case>& tried) {
                           return std::string(tried.param.bind[0] == ':' ? "v6" : "v4") +
                                  (tried.param.offload ? "Offload" : "Plain");
                         });

TEST(UdpMulticastErrors, WhatIsNoGroupIsRefusedByName) {
  const auto udp = UdpTransport::open({}).value();
  const Status status = udp->join_multicast({asio::ip::make_address("10.1.2.3"), 4000}, 0);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.text().find("10.1.2.3"), std::string_view::npos) << status.c_str();
  const Status mixed = udp->join_multicast({asio::ip::make_address("ff05::1"), 4000}, 0);
  EXPECT_EQ(mixed.code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(udp->limits().multicast);
}

}  // namespace
}  // namespace leeway::transport
