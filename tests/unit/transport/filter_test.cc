#include "transport/udp/filter.h"

#include <gtest/gtest.h>

#include "seal/packet.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

constexpr std::uint32_t kTagBase = 0xAABB1234;

Bytes sealed_like(std::uint32_t tag, std::uint8_t phase = 0) {
  Bytes datagram(100);
  seal::encode_header({.phase = phase, .tag = tag, .counter = 7}, datagram);
  return datagram;
}

// A socket with the filter, and one that sends to it.
class Filtered : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    UdpOptions options;
    options.bind_address = asio::ip::make_address(GetParam());
    group_.push_back(UdpTransport::open(options).value());
    options.sealed_tag_base = kTagBase;
    options.socket_buffer_bytes = std::size_t{64} << 10;
    group_.push_back(UdpTransport::open(options).value());
    const std::array addresses = {group_[0]->local_address(), group_[1]->local_address()};
    for (auto& one : group_) ASSERT_TRUE(one->set_peers(addresses).ok());
  }
  void send(const Bytes& datagram) {
    const OwnedTrain train(1, datagram.size(), datagram);
    ASSERT_EQ(send_one(*group_[0], train.train), 1u);
  }
  std::vector<std::unique_ptr<UdpTransport>> group_;
};

TEST_P(Filtered, KeepsWhatIsSealedForThisProcess) {
  for (std::uint8_t phase = 0; phase < 4; ++phase) send(sealed_like(0xAABBFFFF, phase));
  EXPECT_EQ(receive_all(*group_[1], 4).size(), 4u);
  EXPECT_EQ(group_[1]->counters().junk, 0u);
}

TEST_P(Filtered, DropsAnotherTagAnotherFormAndWhatIsTooShort) {
  send(sealed_like(0xAABC1234));
  send(sealed_like(0xABBB1234));
  Bytes another_form = sealed_like(kTagBase);
  another_form[0] = std::byte{0x30};
  send(another_form);
  send(probe_packet(1));
  send(Bytes(7, std::byte{0x50}));
  const Bytes last = sealed_like(kTagBase);
  send(last);
  const auto all = receive_all(*group_[1], 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0], last);
  EXPECT_EQ(group_[1]->counters().receive_calls, 1u);
  EXPECT_EQ(group_[1]->counters().junk, 5u);
}

TEST_P(Filtered, JunkIsNoOverflow) {
  for (int i = 0; i < 1000; ++i) send(sealed_like(0x11111111));
  EXPECT_EQ(group_[1]->counters().kernel_drops, 0u);
  EXPECT_EQ(group_[1]->counters().junk, 1000u);
}

// Another socket of this host overflows while junk comes to this one. This socket must count junk
// only.
TEST_P(Filtered, OtherSocketsOverflowsAreNotOurs) {
  UdpOptions options;
  options.bind_address = asio::ip::make_address(GetParam());
  options.socket_buffer_bytes = 4096;
  const auto other = UdpTransport::open(options).value();
  const std::array addresses = {other->local_address(), group_[1]->local_address()};
  ASSERT_TRUE(group_[0]->set_peers(addresses).ok());
  const OwnedTrain flood(0, 100, Bytes(100));
  for (int i = 0; i < 500; ++i) ASSERT_EQ(send_one(*group_[0], flood.train), 1u);
  EXPECT_GT(other->counters().kernel_drops, 0u);
  for (int i = 0; i < 5; ++i) send(sealed_like(kTagBase));
  EXPECT_EQ(receive_all(*group_[1], 5).size(), 5u);
  for (int i = 0; i < 1000; ++i) send(sealed_like(0x11111111));
  EXPECT_EQ(group_[1]->counters().kernel_drops, 0u);
  EXPECT_EQ(group_[1]->counters().junk, 1000u);
}

// A socket may have overflowed and then been read, so its drops count as overflows, although its
// buffer is empty.
TEST_P(Filtered, OverflowsAreCountedAfterTheBufferWasRead) {
  for (int i = 0; i < 1000; ++i) send(sealed_like(kTagBase));
  std::array<Received, 256> received;
  while (group_[1]->receive(received) > 0) {
  }
  EXPECT_GT(group_[1]->counters().kernel_drops, 0u);
  EXPECT_EQ(group_[1]->counters().junk, 0u);
}

TEST_P(Filtered, OverflowsAreCountedStill) {
  for (int i = 0; i < 1000; ++i) send(sealed_like(kTagBase));
  EXPECT_GT(group_[1]->counters().kernel_drops, 0u);
  EXPECT_EQ(group_[1]->counters().junk, 0u);
}

TEST_P(Filtered, JunkLeavesTheBufferToThePeer) {
  for (int i = 0; i < 1000; ++i) send(sealed_like(0x11111111));
  for (int i = 0; i < 20; ++i) send(sealed_like(kTagBase));
  EXPECT_EQ(receive_all(*group_[1], 20).size(), 20u);
}

INSTANTIATE_TEST_SUITE_P(Families, Filtered, ::testing::Values("127.0.0.1", "::1"),
                         [](const auto& test) {
                           return std::string(test.param) == "::1" ? "V6" : "V4";
                         });

constexpr std::string_view kSnmp =
    "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
    "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n"
    "Udp: 251789399 37150 602 251802376 589 0\n"
    "UdpLite: InDatagrams RcvbufErrors\nUdpLite: 5 6\n";

TEST(SnmpValue, IsFoundByRowAndColumn) {
  EXPECT_EQ(snmp_value(kSnmp, "Udp:", "RcvbufErrors"), 589u);
  EXPECT_EQ(snmp_value(kSnmp, "UdpLite:", "RcvbufErrors"), 6u);
  EXPECT_EQ(snmp6_value("Ip6InReceives  9\nUdp6RcvbufErrors   \t17\n", "Udp6RcvbufErrors"), 17u);
}

TEST(SnmpValue, OfWhatIsNotThereIsZero) {
  EXPECT_EQ(snmp_value(kSnmp, "Tcp:", "RcvbufErrors"), 0u);
  EXPECT_EQ(snmp_value(kSnmp, "Udp:", "Nothing"), 0u);
  EXPECT_EQ(snmp_value("Udp: RcvbufErrors", "Udp:", "RcvbufErrors"), 0u);
  EXPECT_EQ(snmp6_value("Udp6RcvbufErrors", "Udp6RcvbufErrors"), 0u);
  EXPECT_EQ(snmp6_value("", "Udp6RcvbufErrors"), 0u);
}

TEST(ReceiveDrops, NoMoreOverflowedThanAllSocketsSay) {
  EXPECT_EQ(ReceiveDrops::split(10, 3).overflows, 3u);
  EXPECT_EQ(ReceiveDrops::split(10, 3).filtered, 7u);
  EXPECT_EQ(ReceiveDrops::split(10, 300).overflows, 10u);
}

}  // namespace
}  // namespace leeway::transport
