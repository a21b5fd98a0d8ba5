#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "trace/trace_format.h"
#include "written_trace.h"

namespace leeway::sim::trace {
namespace {

using testing::HasSubstr;

class TraceFile : public TraceFiles {
 protected:
  // Writes 8 packets on 3 links, with contents.
  void write_eight(const std::string& name) {
    const auto writer = open(name, {.seed = 9});
    for (std::uint32_t i = 0; i < 8; ++i) {
      const auto step = i % 5 == 4 ? PacketStep::lost : PacketStep::sent;
      writer->on_packet({1000 * i}, step, i % 3, packet_of(i % 4, (i + 1) % 4),
                        data_datagram(i, i, 100));
    }
    ASSERT_TRUE(writer->close().ok());
  }
};

TEST_F(TraceFile, NamesSendTheTerminalNothingButText) {
  auto writer = TraceWriter::open(
      path("t"), {.scenario = "\x1b]0;owned\x07", .ranks = 4, .link_name = [](LinkId) {
                    return std::string("up\x1b[2J\nlink");
                  }});
  ASSERT_TRUE(writer.ok()) << writer.status().c_str();
  (*writer)->on_packet({1}, PacketStep::lost, 1, packet_of(0, 1), {});
  ASSERT_TRUE((*writer)->close().ok());
  Result<TraceReader> reader = TraceReader::open(path("t"));
  ASSERT_TRUE(reader.ok()) << reader.status().c_str();
  EXPECT_EQ(reader->header().scenario(), "?]0;owned?");
  const Packet packet = **reader->next();
  EXPECT_EQ(reader->link_name(packet), "up?[2J?link");
}

TEST_F(TraceFile, WhatIsReadIsWhatWasWritten) {
  const auto writer = open("t", {.scenario = "two regions", .seed = 41, .ranks = 16});
  sim::Packet packet = packet_of(3, 15, 1234);
  packet.traffic = sim::Traffic::control;
  packet.marked = packet.corrupt = true;
  const auto datagram = data_datagram(5, 6);
  writer->on_packet({123}, PacketStep::queue_early, 7, packet, datagram);
  packet.word = 99;
  packet.traffic = sim::Traffic::cross;
  packet.marked = packet.corrupt = false;
  packet.ecn_capable = packet.trimmed = packet.duplicate = true;
  writer->on_packet({456}, PacketStep::delivered, kArrived, packet, {});
  ASSERT_TRUE(writer->close().ok());

  Result<TraceReader> reader = TraceReader::open(path("t"));
  ASSERT_TRUE(reader.ok()) << reader.status().c_str();
  EXPECT_EQ(reader->header().scenario(), "two regions");
  EXPECT_EQ(reader->header().seed(), 41u);
  EXPECT_EQ(reader->header().ranks(), 16u);
  const Packet first = **reader->next();
  EXPECT_EQ(first.time_ns(), 123u);
  EXPECT_EQ(first.step(), queue_early);
  EXPECT_EQ(reader->link_name(first), "uplink 7");
  EXPECT_EQ(first.from(), 3u);
  EXPECT_EQ(first.to(), 15u);
  EXPECT_EQ(first.bytes(), 1234u);
  EXPECT_EQ(first.traffic(), control);
  EXPECT_EQ(first.flags(), kMarked | kCorrupt);
  ASSERT_EQ(first.datagram().size(), kHeaderBytesKept);
  EXPECT_EQ(std::memcmp(first.datagram().data(), datagram.data(), kHeaderBytesKept), 0);
  const Packet second = **reader->next();
  EXPECT_EQ(second.traffic(), cross);
  EXPECT_EQ(second.flags(), kEcnCapable | kTrimmed | kDuplicate);
  EXPECT_EQ(second.word(), 99u);
  EXPECT_FALSE(second.has_datagram());
  EXPECT_EQ(reader->link_name(second), "");
  const auto end = reader->next();
  ASSERT_TRUE(end.ok()) << end.status().c_str();
  EXPECT_EQ(*end, nullptr);
  EXPECT_EQ(reader->packets_read(), 2u);
}

TEST_F(TraceFile, KeepsWholeDatagramsWhenAsked) {
  const auto writer = open("t", {.kept_bytes = kWholeDatagrams});
  writer->on_packet({0}, PacketStep::sent, kArrived, packet_of(0, 1), data_datagram(1, 2, 1400));
  ASSERT_TRUE(writer->close().ok());
  std::vector<Packet> packets;
  ASSERT_TRUE(read_all(path("t"), &packets).ok());
  EXPECT_EQ(packets.at(0).datagram().size(), wire::kDataHeaderBytes + 1400);
}

TEST_F(TraceFile, ATraceWithoutPacketsIsOne) {
  ASSERT_TRUE(open("t")->close().ok());
  EXPECT_TRUE(read_all(path("t")).ok());
}

TEST_F(TraceFile, CutOffAnywhereIsRefusedWithThePlace) {
  write_eight("t");
  const std::string whole = read("t");
  ASSERT_TRUE(read_all(path("t")).ok());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Status status = read_all(write("cut", whole.substr(0, length)));
    ASSERT_FALSE(status.ok()) << length;
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << length;
    EXPECT_THAT(std::string(status.text()), HasSubstr("cut"));
  }
  const Status late = read_all(write("cut", whole.substr(0, whole.size() - 1)));
  EXPECT_THAT(late.c_str(), HasSubstr("byte "));
  EXPECT_THAT(late.c_str(), HasSubstr("cut off"));
}

TEST_F(TraceFile, AnyFlippedBitIsRefused) {
  write_eight("t");
  const std::string whole = read("t");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ASSERT_FALSE(read_all(write("damaged", damaged)).ok()) << "bit " << bit;
  }
}

TEST_F(TraceFile, WhatFollowsTheEndIsRefused) {
  write_eight("t");
  const Status status = read_all(write("longer", read("t") + "x"));
  EXPECT_THAT(status.c_str(), HasSubstr("follows the end"));
}

TEST_F(TraceFile, OtherFilesAreNoTraces) {
  for (const char* content : {"", "x", "ranks: 4\n", "\xff\xff\xff\xff\xff\xff"}) {
    const Status status = read_all(write("other", content));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.c_str(), HasSubstr("no packet trace"));
  }
  EXPECT_EQ(read_all(path("absent")).code(), StatusCode::kUnavailable);
  EXPECT_EQ(read_all(testing::TempDir()).code(), StatusCode::kUnavailable);
}

TEST_F(TraceFile, TracesOfALaterFormatAreNamedAsThat) {
  ASSERT_TRUE(open("t")->close().ok());
  Entry entry;
  entry.mutable_header()->set_format(kFormatName);
  entry.mutable_header()->set_version(kFormatVersion + 1);
  std::string packed = entry.SerializeAsString();
  packed.insert(packed.begin(), static_cast<char>(packed.size()));
  EXPECT_EQ(read_all(write("later", packed)).code(), StatusCode::kUnsupported);
}

TEST_F(TraceFile, AFolderThatDoesNotExistIsNamed) {
  const auto writer = TraceWriter::open("/no/such/folder/t", {});
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(writer.status().c_str(), HasSubstr("/no/such/folder/t"));
}

TEST_F(TraceFile, AFullDiskIsToldByClose) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  auto writer = TraceWriter::open("/dev/full", {.ranks = 4});
  ASSERT_TRUE(writer.ok());
  for (int i = 0; i < 1000; ++i) {
    (*writer)->on_packet({i}, PacketStep::sent, kArrived, packet_of(0, 1), data_datagram(1, 2));
  }
  EXPECT_FALSE((*writer)->close().ok());
}

}  // namespace
}  // namespace leeway::sim::trace
