#include "trace/pcapng.h"

#include <gtest/gtest.h>

#include <cstring>

#include "written_trace.h"

namespace leeway::sim::trace {
namespace {

template <typename T>
T little(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint32_t big16(const std::string& bytes, std::size_t at) {
  return static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[at]) << 8 |
                                    static_cast<std::uint8_t>(bytes[at + 1]));
}

// Splits a file into blocks: type, length, body and again length, in multiples of 4.
std::vector<std::string> blocks_of(const std::string& file) {
  std::vector<std::string> blocks;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = little<std::uint32_t>(file, at + 4);
    EXPECT_EQ(length % 4, 0u);
    if (length < 12 || at + length > file.size()) {
      ADD_FAILURE() << "block of " << length << " bytes at " << at;
      break;
    }
    EXPECT_EQ(little<std::uint32_t>(file, at + length - 4), length);
    blocks.push_back(file.substr(at, length));
    at += length;
  }
  return blocks;
}

class Pcapng : public TraceFiles {
 protected:
  std::vector<std::string> convert(const PacketFilter& filter = {}) {
    const auto written = write_pcapng(path("t"), path("t.pcapng"), filter);
    EXPECT_TRUE(written.ok()) << written.status().c_str();
    auto blocks = blocks_of(read("t.pcapng"));
    EXPECT_EQ(blocks.size(), 4 + *written) << "a section and three interfaces come first";
    return blocks;
  }
  void write_one(PacketStep step, const sim::Packet& packet, ByteSpan datagram) {
    const auto writer = open("t", {.ranks = 1000});
    writer->on_packet({5'000'000'123}, step, 2, packet, datagram);
    ASSERT_TRUE(writer->close().ok());
  }
};

constexpr std::size_t kIp = 28;  // offset of the captured bytes in a packet block

TEST_F(Pcapng, ADeliveredPacket) {
  sim::Packet packet = packet_of(3, 700, 1500);
  packet.marked = true;
  const auto datagram = data_datagram(1, 2, 1416);
  write_one(PacketStep::delivered, packet, datagram);
  const std::string block = convert().at(4);
  EXPECT_EQ(little<std::uint32_t>(block, 0), 6u);
  EXPECT_EQ(little<std::uint32_t>(block, 8), 1u) << "interface \"delivered\"";
  const std::uint64_t time =
      std::uint64_t{little<std::uint32_t>(block, 12)} << 32 | little<std::uint32_t>(block, 16);
  EXPECT_EQ(time, 5'000'000'123u);
  EXPECT_EQ(little<std::uint32_t>(block, 20), kHeaderBytes + kHeaderBytesKept) << "captured";
  EXPECT_EQ(little<std::uint32_t>(block, 24), 1500u) << "original";
  EXPECT_EQ(block[kIp], 0x45);
  EXPECT_EQ(block[kIp + 1], 3) << "congestion experienced";
  EXPECT_EQ(big16(block, kIp + 2), 1500u);
  EXPECT_EQ(block.substr(kIp + 12, 4), std::string("\x0a\0\0\x03", 4));
  EXPECT_EQ(block.substr(kIp + 16, 4), std::string("\x0a\0\x02\xbc", 4));
  EXPECT_EQ(big16(block, kIp + 24), 1480u) << "UDP length";
  EXPECT_EQ(std::memcmp(block.data() + kIp + 28, datagram.data(), kHeaderBytesKept), 0);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += big16(block, kIp + i);
  EXPECT_EQ((sum & 0xFFFF) + (sum >> 16), 0xFFFFu) << "IPv4 checksum";
}

TEST_F(Pcapng, ALostPacketSaysHowAndWhere) {
  write_one(PacketStep::queue_full, packet_of(0, 1), {});
  const std::string block = convert().at(4);
  EXPECT_EQ(little<std::uint32_t>(block, 8), 2u) << "interface \"lost\"";
  EXPECT_EQ(little<std::uint32_t>(block, 20), kHeaderBytes);
  EXPECT_NE(block.find("queue full on uplink 2"), std::string::npos);
}

TEST_F(Pcapng, InterfacesCountNanoseconds) {
  write_one(PacketStep::sent, packet_of(0, 1), {});
  const auto blocks = convert();
  EXPECT_EQ(little<std::uint32_t>(blocks.at(0), 0), 0x0A0D0D0Au);
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(little<std::uint32_t>(blocks.at(i), 0), 1u);
    EXPECT_EQ(little<std::uint16_t>(blocks.at(i), 8), 101u) << "raw IP";
    EXPECT_NE(blocks.at(i).find(std::string("\x09\0\x01\0\x09", 5)), std::string::npos);
  }
}

TEST_F(Pcapng, PacketsTooLongForIpAreClamped) {
  write_one(PacketStep::sent, packet_of(0, 1, 1'000'000), {});
  const std::string block = convert().at(4);
  EXPECT_EQ(little<std::uint32_t>(block, 24), 65535u);
  EXPECT_EQ(big16(block, kIp + 2), 65535u);
}

TEST_F(Pcapng, OnlyWhatTheFilterAdmits) {
  write_one(PacketStep::sent, packet_of(0, 1), {});
  EXPECT_EQ(convert({.from = 1}).size(), 4u);
}

TEST_F(Pcapng, UnreadableAndUnwritableFilesAreErrors) {
  EXPECT_FALSE(write_pcapng(path("absent"), path("out"), {}).ok());
  write_one(PacketStep::sent, packet_of(0, 1), {});
  const auto written = write_pcapng(path("t"), "/no/such/folder/out", {});
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.status().text().find("/no/such/folder/out"), std::string_view::npos);
}

}  // namespace
}  // namespace leeway::sim::trace
