#include "transport/verbs/peers.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "unit/transport/fake_verbs.h"

namespace leeway::transport {
namespace {

ibv_wc arrived(std::uint32_t queue_pair, unsigned flags = IBV_WC_GRH, std::uint16_t lid = 0) {
  ibv_wc completion{};
  completion.src_qp = queue_pair;
  completion.wc_flags = flags;
  completion.slid = lid;
  return completion;
}

Bytes gid_header(const Gid& gid) {
  Bytes header(kNetworkHeaderBytes);
  std::memcpy(&header[8], gid.data(), gid.size());
  return header;
}

VerbsAddress at(const char* ip, std::uint32_t queue_pair = 100) {
  return {LinkLayer::ethernet, 0, queue_pair, 1, gid_of(asio::ip::make_address(ip))};
}

VerbsAddress infiniband(std::uint16_t lid, std::uint32_t queue_pair = 100) {
  VerbsAddress address{LinkLayer::infiniband, lid, queue_pair, 1, {0xFE, 0x80}};
  address.gid[15] = static_cast<std::uint8_t>(lid);
  return address;
}

TEST(VerbsPeersFind, KnowsIpv4SendersByAddressAndQueuePair) {
  std::vector<VerbsAddress> ranks;
  for (unsigned host = 1; host <= 200; ++host) ranks.push_back(roce_address(host, 100 + host % 3));
  VerbsPeers peers;
  ASSERT_TRUE(peers.assign(ranks, ranks[5]).ok());
  EXPECT_EQ(peers.self(), 5u);
  for (unsigned host = 1; host <= 200; ++host) {
    EXPECT_EQ(peers.find(arrived(100 + host % 3), ipv4_header(host).data()), host - 1);
    EXPECT_EQ(peers.find(arrived(101 + host % 3), ipv4_header(host).data()), kNoRank);
  }
  EXPECT_EQ(peers.find(arrived(100), ipv4_header(201).data()), kNoRank);
}

TEST(VerbsPeersFind, TakesNoOtherHeaderForAnIpv4One) {
  const VerbsAddress own = roce_address(1);
  VerbsPeers peers;
  ASSERT_TRUE(peers.assign(std::vector{own, roce_address(2)}, own).ok());
  EXPECT_EQ(peers.find(arrived(100), gid_header(roce_address(2).gid).data()), kNoRank);
  Bytes header = ipv4_header(2);
  header[20] = std::byte{0x46};  // with options: its end is not in the 40 bytes
  EXPECT_EQ(peers.find(arrived(100), header.data()), kNoRank);
  EXPECT_EQ(peers.find(arrived(100, 0, 7), ipv4_header(2).data()), kNoRank);
}

TEST(VerbsPeersFind, KnowsIpv6SendersByTheGidInFront) {
  const std::vector ranks = {at("fd00::1"), at("fd00::2"), at("fd00::2", 101)};
  VerbsPeers peers;
  ASSERT_TRUE(peers.assign(ranks, ranks[0]).ok());
  EXPECT_EQ(peers.find(arrived(100), gid_header(ranks[1].gid).data()), 1u);
  EXPECT_EQ(peers.find(arrived(101), gid_header(ranks[1].gid).data()), 2u);
  EXPECT_EQ(peers.find(arrived(102), gid_header(ranks[1].gid).data()), kNoRank);
}

TEST(VerbsPeersFind, KnowsInfinibandSendersByLidOrGid) {
  const std::vector ranks = {infiniband(1), infiniband(2)};
  VerbsPeers peers;
  ASSERT_TRUE(peers.assign(ranks, ranks[0]).ok());
  const Bytes garbage = pattern(kNetworkHeaderBytes);
  EXPECT_EQ(peers.find(arrived(100, 0, 2), garbage.data()), 1u);
  EXPECT_EQ(peers.find(arrived(100, IBV_WC_GRH, 9), gid_header(ranks[1].gid).data()), 1u);
  EXPECT_EQ(peers.find(arrived(100, 0, 3), garbage.data()), kNoRank);
}

TEST(VerbsPeersFind, KnowsNobodyBeforeAssign) {
  EXPECT_EQ(VerbsPeers().find(arrived(100), ipv4_header(1).data()), kNoRank);
}

TEST(VerbsPeersAssign, RefusesWhatCannotBeOneGroup) {
  VerbsPeers peers;
  const VerbsAddress own = roce_address(1);
  const auto code = [&](std::vector<VerbsAddress> ranks) {
    return peers.assign(ranks, own).code();
  };
  EXPECT_EQ(code({}), StatusCode::kResourceExhausted);
  EXPECT_EQ(code(std::vector<VerbsAddress>(limits::kPeersMax + 1, own)),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(code({own, roce_address(2), roce_address(2)}), StatusCode::kMismatch);
  EXPECT_EQ(code({own, own}), StatusCode::kMismatch);
  EXPECT_EQ(code({roce_address(2), roce_address(3)}), StatusCode::kMismatch);  // where am I?
  EXPECT_EQ(code({own, infiniband(2)}), StatusCode::kMismatch);
  EXPECT_EQ(code({own, at("fd00::2")}), StatusCode::kMismatch);
  EXPECT_EQ(peers.self(), kNoRank);
  EXPECT_EQ(code({own, roce_address(1, 101)}), StatusCode::kOk);  // two ranks on one port
}

}  // namespace
}  // namespace leeway::transport
