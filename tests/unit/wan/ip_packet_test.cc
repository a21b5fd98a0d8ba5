#include "ip_packet.h"

#include <gtest/gtest.h>

#include <array>

#include "unit/wan/ip_samples.h"

namespace leeway::lab {
namespace {

constexpr Address kFrom = 0x0a580001, kTo = 0x0a580002;

TEST(Ipv4View, ReadsAddressesAndEcn) {
  const auto packet = ip_packet(kFrom, kTo, 100, 2);
  const Ipv4View view(packet);
  ASSERT_TRUE(view.valid());
  EXPECT_EQ(view.source(), kFrom);
  EXPECT_EQ(view.destination(), kTo);
  EXPECT_TRUE(view.ecn_capable());
  EXPECT_TRUE(view.dont_fragment());
  EXPECT_FALSE(Ipv4View(ip_packet(kFrom, kTo, 100)).ecn_capable());
}

TEST(Ipv4View, RefusesWhatIsNoPacketOfItsLength) {
  auto packet = ip_packet(kFrom, kTo, 100);
  EXPECT_FALSE(Ipv4View({}).valid());
  EXPECT_FALSE(Ipv4View(ByteSpan(packet).first(19)).valid());
  EXPECT_FALSE(Ipv4View(ByteSpan(packet).first(99)).valid());
  packet[0] = std::byte{0x65};  // IPv6
  EXPECT_FALSE(Ipv4View(packet).valid());
  packet[0] = std::byte{0x44};  // a header of 16 bytes
  EXPECT_FALSE(Ipv4View(packet).valid());
  packet = ip_packet(kFrom, kTo, 30);
  packet[0] = std::byte{0x4f};  // a header of 60 bytes in a packet of 30
  EXPECT_FALSE(Ipv4View(packet).valid());
}

TEST(MarkCongestion, SetsTheBitsAndKeepsTheChecksumRight) {
  auto packet = ip_packet(kFrom, kTo, 100, 2);
  ASSERT_EQ(ones_sum(ByteSpan(packet).first(20)), 0xffffu);
  mark_congestion(packet);
  EXPECT_EQ(std::to_integer<unsigned>(packet[1]) & 3, 3u);
  EXPECT_EQ(ones_sum(ByteSpan(packet).first(20)), 0xffffu);
}

TEST(WriteTooBig, AnswersTheSenderWithTheMtuAndTheBeginningOfItsPacket) {
  const auto packet = ip_packet(kFrom, kTo, 1400);
  std::array<std::byte, kIcmpBytesMax> out{};
  const std::size_t bytes = write_too_big(packet, 1300, out);
  ASSERT_EQ(bytes, 20u + 8 + 20 + 8);
  const Ipv4View answer(ByteSpan(out).first(bytes));
  ASSERT_TRUE(answer.valid());
  EXPECT_EQ(answer.destination(), kFrom);
  EXPECT_EQ(ones_sum(ByteSpan(out).first(20)), 0xffffu);
  EXPECT_EQ(ones_sum(ByteSpan(out).subspan(20, bytes - 20)), 0xffffu);
  EXPECT_EQ(out[9], std::byte{1});
  EXPECT_EQ(out[20], std::byte{3});
  EXPECT_EQ(out[21], std::byte{4});
  EXPECT_EQ(std::to_integer<unsigned>(out[26]) << 8 | std::to_integer<unsigned>(out[27]), 1300u);
  EXPECT_TRUE(std::equal(packet.begin(), packet.begin() + 28, out.begin() + 28));
}

}  // namespace
}  // namespace leeway::lab
