#include "transport/verbs/verbs_devices.h"

#include <gtest/gtest.h>

#include "transport/verbs/device.h"

namespace leeway::transport {
namespace {

const asio::ip::address kAddress = asio::ip::make_address("10.0.0.1");

VerbsPort ethernet_port(std::vector<VerbsGid> gids) {
  VerbsPort port;
  port.gids = std::move(gids);
  return port;
}

TEST(VerbsGidChoice, IsTheRoceV2EntryOfTheAddress) {
  const Gid local = gid_of(asio::ip::make_address("fe80::1"));
  const Gid other = gid_of(asio::ip::make_address("10.0.0.2"));
  const Gid wanted = gid_of(kAddress);
  const VerbsPort port = ethernet_port({{0, GidType::roce_v1, local},
                                        {1, GidType::roce_v2, local},
                                        {2, GidType::roce_v1, wanted},
                                        {4, GidType::roce_v2, other},
                                        {5, GidType::roce_v2, wanted},
                                        {6, GidType::roce_v2, wanted}});
  const VerbsGid* chosen = choose_gid(port, kAddress);
  ASSERT_NE(chosen, nullptr);
  EXPECT_EQ(chosen->index, 5u);
}

TEST(VerbsGidChoice, IsNoneWhereTheAddressHasNoRoceV2Entry) {
  const VerbsPort port = ethernet_port({{2, GidType::roce_v1, gid_of(kAddress)}});
  EXPECT_EQ(choose_gid(port, kAddress), nullptr);
}

TEST(VerbsGidChoice, IsThePortsOwnOnInfiniband) {
  VerbsPort port =
      ethernet_port({{0, GidType::infiniband, {0xFE, 0x80}}, {1, GidType::infiniband, {1}}});
  port.link = LinkLayer::infiniband;
  ASSERT_NE(choose_gid(port, kAddress), nullptr);
  EXPECT_EQ(choose_gid(port, kAddress)->index, 0u);
  port.gids.clear();
  EXPECT_EQ(choose_gid(port, kAddress), nullptr);
}

TEST(VerbsQueueSizes, HoldTheBytesAskedForAsFarAsTheDeviceAllows) {
  VerbsPort port;
  port.mtu_bytes = 4096;
  port.queue_entries_max = 16384;
  port.pieces_max = 30;
  EXPECT_EQ(queue_sizes(port, 8u << 20)->receive_entries, 2048u);
  EXPECT_EQ(queue_sizes(port, 1u << 30)->receive_entries, 16384u);
  EXPECT_EQ(queue_sizes(port, 0)->receive_entries, 256u);
  EXPECT_EQ(queue_sizes(port, 8u << 20)->pieces, 4u);
  port.pieces_max = 2;
  EXPECT_EQ(queue_sizes(port, 8u << 20)->pieces, 2u);
  port.queue_entries_max = 255;
  EXPECT_FALSE(queue_sizes(port, 8u << 20));
}

TEST(VerbsQueueSizes, PromiseLessThanThereIs) {
  for (const std::size_t entries : {256u, 2048u}) {
    EXPECT_LE(promised_entries(entries) + 64, entries);
    EXPECT_GE(promised_entries(entries), entries / 2);
  }
}

TEST(VerbsPorts, AreListedWhereThereAreAnyAndDescribedOrExcused) {
  for (const VerbsPort& port : list_verbs_ports()) {
    EXPECT_FALSE(port.device.empty());
    EXPECT_EQ(port.error == 0, !port.state.empty());
  }
}

}  // namespace
}  // namespace leeway::transport
