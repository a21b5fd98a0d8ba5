#include "transport/udp/peer_table.h"

#include <gtest/gtest.h>

#include <cstring>

namespace leeway::transport {
namespace {

UdpAddress at(const char* address, int port) {
  return {asio::ip::make_address(address), static_cast<std::uint16_t>(port)};
}

sockaddr_storage raw(const UdpAddress& address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.data(), address.size());
  return storage;
}

TEST(PeerTableFind, KnowsEveryPeerOfAFullTableAndNobodyElse) {
  std::vector<UdpAddress> peers;
  for (int rank = 0; rank < 1024; ++rank) {
    peers.push_back(
        at(("10.0." + std::to_string(rank % 32) + "." + std::to_string(rank / 32)).c_str(),
           4000 + rank % 7));
  }
  PeerTable table;
  ASSERT_TRUE(table.assign(peers).ok());
  EXPECT_TRUE(table.knows(1023));
  EXPECT_FALSE(table.knows(1024));
  EXPECT_FALSE(table.knows(kEveryRank)) << "no group was set";
  for (Rank rank = 0; rank < 1024; ++rank) EXPECT_EQ(table.find(raw(peers[rank])), rank);
  EXPECT_EQ(table.find(raw(at("10.0.0.0", 5000))), kNoRank);
  EXPECT_EQ(table.find(raw(at("10.1.0.0", 4000))), kNoRank);
}

TEST(PeerTableFind, PortsTellRanksOfOneHostApart) {
  const std::vector<UdpAddress> peers = {at("127.0.0.1", 1), at("127.0.0.1", 2)};
  PeerTable table;
  ASSERT_TRUE(table.assign(peers).ok());
  EXPECT_EQ(table.find(raw(peers[1])), 1);
  EXPECT_EQ(table.find(raw(at("127.0.0.1", 3))), kNoRank);
}

TEST(PeerTableFind, ReadsIpVersionSixWithoutItsFlowLabel) {
  const std::vector<UdpAddress> peers = {at("fd00::1", 7), at("fd00::2", 7)};
  PeerTable table;
  ASSERT_TRUE(table.assign(peers).ok());
  sockaddr_storage storage = raw(peers[1]);
  reinterpret_cast<sockaddr_in6&>(storage).sin6_flowinfo = htonl(0x12345);
  EXPECT_EQ(table.find(storage), 1);
  EXPECT_EQ(table.find(raw(at("fd00:0:0:1::2", 7))), kNoRank);
}

TEST(PeerTableFind, AnEmptyTableKnowsNobody) {
  const PeerTable table;
  EXPECT_EQ(table.find(raw(at("127.0.0.1", 1))), kNoRank);
}

TEST(PeerTableAssign, TwoRanksAtOneAddressAreNamed) {
  PeerTable table;
  const Status status = table.assign(
      std::vector<UdpAddress>{at("127.0.0.1", 1), at("127.0.0.1", 2), at("127.0.0.1", 1)});
  EXPECT_EQ(status.code(), StatusCode::kMismatch);
  EXPECT_NE(status.text().find("ranks 0 and 2"), std::string_view::npos);
}

TEST(PeerTableAssign, MixedFamiliesAndBadCountsAreRefused) {
  PeerTable table;
  EXPECT_FALSE(table.assign(std::vector<UdpAddress>{at("127.0.0.1", 1), at("::1", 2)}).ok());
  EXPECT_FALSE(table.assign({}).ok());
  EXPECT_FALSE(table.assign(std::vector<UdpAddress>(1025, at("127.0.0.1", 1))).ok());
}

TEST(PeerTableAssign, AFailureLeavesTheTableAsItWas) {
  PeerTable table;
  const std::vector<UdpAddress> peers = {at("127.0.0.1", 1)};
  ASSERT_TRUE(table.assign(peers).ok());
  EXPECT_FALSE(table.assign({}).ok());
  EXPECT_EQ(table.find(raw(peers[0])), 0);
}

TEST(PeerTableMeet, AddsPeersOneByOne) {
  PeerTable table;
  for (Rank peer = 0; peer < 100; ++peer) {
    EXPECT_EQ(table.count(), peer);
    ASSERT_TRUE(table.meet(peer, at("10.0.0.1", 1000 + peer)).ok());
  }
  for (Rank peer = 0; peer < 100; ++peer) {
    EXPECT_EQ(table.find(raw(at("10.0.0.1", 1000 + peer))), peer);
    EXPECT_EQ(table.address_of(peer).port(), 1000 + peer);
  }
  EXPECT_EQ(table.find(raw(at("10.0.0.1", 999))), kNoRank);
}

TEST(PeerTableMeet, APeerMaySendFromSeveralAddresses) {
  PeerTable table;
  ASSERT_TRUE(table.meet(0, at("10.0.0.1", 1)).ok());
  ASSERT_TRUE(table.meet(0, at("192.168.0.1", 1)).ok());
  EXPECT_EQ(table.find(raw(at("192.168.0.1", 1))), 0);
  EXPECT_EQ(table.address_of(0), at("10.0.0.1", 1)) << "it is sent to where it was met";
  EXPECT_EQ(table.count(), 1);
}

TEST(PeerTableMeet, AnAddressBelongsToTheProcessThatHasItNow) {
  PeerTable table;
  ASSERT_TRUE(table.meet(0, at("10.0.0.1", 1)).ok());
  ASSERT_TRUE(table.meet(1, at("10.0.0.1", 1)).ok());
  EXPECT_EQ(table.find(raw(at("10.0.0.1", 1))), 1);
}

TEST(PeerTableMeet, RefusesAnotherFamilyAndTooMany) {
  PeerTable table;
  ASSERT_TRUE(table.meet(0, at("10.0.0.1", 1)).ok());
  EXPECT_EQ(table.meet(1, at("fd00::1", 1)).code(), StatusCode::kMismatch);
  EXPECT_EQ(table.meet(1024, at("10.0.0.2", 1)).code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace leeway::transport
