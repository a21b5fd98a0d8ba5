#include "train.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "unit/wan/ip_samples.h"

namespace leeway::lab {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Address kSentFrom = 0x0a580001, kSentTo = 0x0a580002;
constexpr std::size_t kIp = 20, kUdp = 28, kTcp = 40;
constexpr std::uint8_t kUdpTrain = 5, kTcpTrain = 1;
constexpr unsigned kAck = 16, kPush = 8, kFin = 1;

// Completes a packet as the kernel hands it to a network card: its checksum field holds the sum of
// the pseudo header.
Bytes complete(Bytes packet) {
  const auto transport = find_transport(packet);
  EXPECT_TRUE(transport.has_value());
  put16(packet, transport->checksum(), pseudo_header_sum(packet, *transport));
  return packet;
}

// Fills the payload with numbers that count up from `first`.
void fill(std::span<std::byte> payload, unsigned first) {
  for (std::size_t i = 0; i < payload.size(); ++i)
    payload[i] = static_cast<std::byte>((first + i) % 251);
}

Bytes udp(std::size_t payload, unsigned first = 0, std::uint32_t port = 7000) {
  Bytes packet = ip_packet(kSentFrom, kSentTo, kUdp + payload);
  packet[9] = std::byte{17};
  put16(packet, kIp, port);
  put16(packet, kIp + 2, 9);
  put16(packet, kIp + 4, static_cast<std::uint32_t>(8 + payload));
  fill(std::span(packet).subspan(kUdp), first);
  set_total_bytes(packet, packet.size());
  return complete(std::move(packet));
}

Bytes tcp(std::size_t payload, std::uint32_t sequence, unsigned flags = kAck) {
  Bytes packet = ip_packet(kSentFrom, kSentTo, kTcp + payload);
  packet[9] = std::byte{6};
  put32(packet, kIp + 4, sequence);
  put32(packet, kIp + 8, 77);
  put16(packet, kIp + 12, 5u << 12 | flags);
  put16(packet, kIp + 14, 1000);
  fill(std::span(packet).subspan(kTcp), sequence);
  set_total_bytes(packet, packet.size());
  return complete(std::move(packet));
}

// Returns a packet as it is read from a device.
Bytes read(const Bytes& packet, std::uint8_t train = 0, std::uint16_t segment = 0) {
  DeviceHeader header{};
  header.train = train;
  header.segment_bytes = segment;
  Bytes all(kDeviceHeaderBytes + packet.size());
  std::memcpy(all.data(), &header, sizeof(header));
  std::ranges::copy(packet, all.begin() + kDeviceHeaderBytes);
  return all;
}

std::vector<Bytes> cut(Bytes from_device) {
  std::vector<Bytes> packets;
  Cut cut(from_device);
  for (auto packet = cut.next(); !packet.empty(); packet = cut.next())
    packets.emplace_back(packet.begin(), packet.end());
  return packets;
}

struct Written {
  DeviceHeader header;
  Bytes packet;
};

std::vector<Written> flush(Trains& trains) {
  std::vector<Written> all;
  trains.flush([&](ByteSpan written) {
    Written& one = all.emplace_back();
    std::memcpy(&one.header, written.data(), sizeof(one.header));
    const ByteSpan packet = written.subspan(kDeviceHeaderBytes);
    one.packet.assign(packet.begin(), packet.end());
  });
  return all;
}

std::vector<Written> join(const std::vector<Bytes>& packets) {
  Trains trains;
  for (const Bytes& packet : packets) EXPECT_TRUE(trains.add(packet, false));
  return flush(trains);
}

TEST(Cut, GivesAPacketAsItIs) {
  const Bytes packet = udp(100);
  EXPECT_EQ(cut(read(packet)), (std::vector<Bytes>{packet}));
  EXPECT_TRUE(cut(Bytes(kDeviceHeaderBytes)).empty());
  EXPECT_TRUE(cut(Bytes(3)).empty());
}

TEST(Cut, CutsATrainOfUdpAsACardDoes) {
  const auto packets = cut(read(udp(2500), kUdpTrain, 1000));
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0], udp(1000, 0));
  // IP numbers packets consecutively.
  Bytes second = udp(1000, 1000);
  put16(second, 4, get16(packets[0], 4) + 1);
  set_total_bytes(second, second.size());
  EXPECT_EQ(packets[1], second);
  EXPECT_EQ(packets[2].size(), kUdp + 500);
  EXPECT_EQ(get16(packets[2], kIp + 4), 508u);
}

TEST(Cut, CutsATrainOfTcpAsACardDoes) {
  const auto packets = cut(read(tcp(2500, 5000, kAck | kPush | kFin), kTcpTrain, 1000));
  ASSERT_EQ(packets.size(), 3u);
  EXPECT_EQ(packets[0], tcp(1000, 5000));
  EXPECT_EQ(get32(packets[1], kIp + 4), 6000u);
  EXPECT_EQ(get16(packets[1], kIp + 12) & 0xff, kAck);
  EXPECT_EQ(get32(packets[2], kIp + 4), 7000u);
  EXPECT_EQ(get16(packets[2], kIp + 12) & 0xff, kAck | kPush | kFin);
}

// Headers of later packets overwrite the end of earlier ones. A program's odd packets must not make
// the laboratory read or write elsewhere.
TEST(Cut, TakesWhatIsNoTrainForOnePacket) {
  const Bytes packet = udp(100);
  EXPECT_EQ(cut(read(packet, kTcpTrain, 10)).size(), 1u);
  EXPECT_EQ(cut(read(packet, kUdpTrain, 0)).size(), 1u);
  EXPECT_EQ(cut(read(udp(0), kUdpTrain, 10)).size(), 1u);
  Bytes lies = packet;
  put16(lies, kIp + 4, 4000);  // UDP's length
  EXPECT_EQ(cut(read(lies, kUdpTrain, 10)).size(), 1u);
  EXPECT_EQ(cut(read(Bytes(30, std::byte{0x4f}), kUdpTrain, 10)).size(), 1u);
  EXPECT_EQ(cut(read(packet, kUdpTrain, 1)).size(), 100u);
}

TEST(Trains, AreWhatWasCut) {
  for (const auto& [packet, kind] : {std::pair{udp(5300), kUdpTrain}, {tcp(5300, 9), kTcpTrain}}) {
    const auto written = join(cut(read(packet, kind, 1000)));
    ASSERT_EQ(written.size(), 1u);
    EXPECT_EQ(written[0].packet, packet);
    EXPECT_EQ(written[0].header.train, kind);
    EXPECT_EQ(written[0].header.segment_bytes, 1000);
    EXPECT_EQ(written[0].header.flags, 1);
    EXPECT_EQ(written[0].header.checksum_begin, kIp);
    EXPECT_EQ(written[0].header.checksum_at, kind == kUdpTrain ? 6 : 16);
  }
}

TEST(Trains, LeaveOutWhatWasLost) {
  auto packets = cut(read(udp(5000), kUdpTrain, 1000));
  packets.erase(packets.begin() + 2);
  const auto written = join(packets);
  ASSERT_EQ(written.size(), 1u);
  ASSERT_EQ(written[0].packet.size(), kUdp + 4000);
  EXPECT_TRUE(std::equal(packets[2].begin() + kUdp, packets[2].end(),
                         written[0].packet.begin() + kUdp + 2000));
  // TCP's sequence numbers show the gap.
  packets = cut(read(tcp(5000, 100), kTcpTrain, 1000));
  packets.erase(packets.begin() + 2);
  EXPECT_EQ(join(packets).size(), 2u);
}

TEST(Trains, KeepFlowsApartAndInOrder) {
  const auto written = join({udp(1000, 0, 1), udp(1000, 5, 2), udp(1000, 1000, 1), udp(10, 3, 2)});
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].packet.size(), kUdp + 2000);
  EXPECT_EQ(written[1].packet.size(), kUdp + 1010);
}

TEST(Trains, EndWithAPacketThatIsShort) {
  const auto written = join({udp(1000), udp(500), udp(500), udp(1000)});
  ASSERT_EQ(written.size(), 3u);  // 1000 + 500, 500, 1000 bytes: a longer packet begins a new train
  EXPECT_EQ(written[0].packet.size(), kUdp + 1500);
  EXPECT_EQ(written[1].packet.size(), kUdp + 500);
}

TEST(Trains, KeepWhatTcpSaysOfItsPackets) {
  EXPECT_EQ(join({tcp(100, 0, kAck | kPush), tcp(100, 100)}).size(), 2u);
  const auto pushed = join({tcp(100, 0), tcp(100, 100, kAck | kPush), tcp(100, 200)});
  ASSERT_EQ(pushed.size(), 2u);
  EXPECT_EQ(get16(pushed[0].packet, kIp + 12) & 0xff, kAck | kPush);
  EXPECT_EQ(join({tcp(100, 0), tcp(100, 100, kAck | kFin)}).size(), 2u);
  Bytes other_window = tcp(100, 100);
  put16(other_window, kIp + 14, 999);
  EXPECT_EQ(join({tcp(100, 0), other_window}).size(), 2u);
}

TEST(Trains, KeepMarksOfCongestion) {
  Bytes first = udp(1000), marked = udp(1000, 1000);
  first[1] |= std::byte{2};
  set_total_bytes(first, first.size());
  mark_congestion(marked);
  EXPECT_EQ(join({first, marked}).size(), 2u);
}

TEST(Trains, LeaveChecksumsToWhoMustLookAtThem) {
  // The second packet was damaged on its way, and the receiver's kernel must find that out.
  Trains trains;
  EXPECT_TRUE(trains.add(udp(1000), true));
  EXPECT_TRUE(trains.add(udp(1000), false));
  auto written = flush(trains);
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].header.flags, 0);
  EXPECT_EQ(written[1].header.flags, 1);
  // The sender computed this checksum, right or wrong, so it must stay.
  Bytes summed = udp(1000);
  put16(summed, kIp + 6, get16(summed, kIp + 6) ^ 0x55);
  written = join({summed, summed});
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].header.flags, 0);
  EXPECT_EQ(written[0].packet, summed);
}

TEST(Trains, HoldWhatFits) {
  std::vector<Bytes> packets(100, udp(1000));
  const auto written = join(packets);
  std::size_t payload = 0;
  for (const Written& one : written) {
    EXPECT_LE(one.packet.size(), kPacketBytesMax);
    payload += one.packet.size() - kUdp;
  }
  EXPECT_EQ(payload, 100'000u);
  EXPECT_EQ(written.size(), 2u);

  Trains trains;
  std::size_t flows = 0;
  while (trains.add(udp(10, 0, static_cast<std::uint32_t>(100 + flows)), false)) ++flows;
  EXPECT_EQ(flows, 16u);
  EXPECT_EQ(flush(trains).size(), 16u);
  EXPECT_TRUE(trains.empty());
  EXPECT_TRUE(trains.add(udp(10), false));
}

}  // namespace
}  // namespace leeway::lab
