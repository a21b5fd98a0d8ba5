#include "trace/packet_text.h"

#include <gtest/gtest.h>

#include "trace/trace_format.h"
#include "written_trace.h"

namespace leeway::sim::trace {
namespace {

Packet packet_at(std::uint64_t time_ns, Step step) {
  Packet packet;
  packet.set_time_ns(time_ns);
  packet.set_step(step);
  packet.set_from(3);
  packet.set_to(12);
  packet.set_bytes(1500);
  packet.set_traffic(data);
  return packet;
}

TEST(PacketText, TimeStepRanksBytesContentsFlagsAndLink) {
  Packet packet = packet_at(12'345'678, lost);
  const auto datagram = data_datagram(3, 17);
  packet.set_datagram(datagram.data(), kHeaderBytesKept);
  packet.set_flags(kMarked | kDuplicate);
  EXPECT_EQ(
      packet_text(packet, "eu>us"),
      "      12.345678 ms  lost             3>12   1500 B  data round 3 reduce packet 17 of 64"
      "  marked, duplicate  on eu>us");
}

TEST(PacketText, PacketsWithoutContentsAndTrafficOfOthers) {
  Packet packet = packet_at(1, sent);
  packet.set_word(0xab);
  EXPECT_EQ(packet_text(packet, "3>12"),
            "       0.000001 ms  sent             3>12   1500 B  data, word 00000000000000ab");
  packet.set_traffic(cross);
  EXPECT_EQ(packet_text(packet, ""),
            "       0.000001 ms  sent             3>12   1500 B  cross traffic");
}

}  // namespace
}  // namespace leeway::sim::trace
