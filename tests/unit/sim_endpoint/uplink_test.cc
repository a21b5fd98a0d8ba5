#include "endpoint/uplink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "scenario/parse.h"

namespace leeway::sim {
namespace {

// A line on which a byte takes a nanosecond.
class Line {
 public:
  explicit Line(const std::string& queue)
      : topology(Topology::make(scenario::parse_text("ranks: 2 topology { star {} }"
                                                     " link { tier: uplink rate_mbps: 8000 " +
                                                         queue + " }",
                                                     "test")
                                    .value())
                     .value()),
        network(Network::make(topology, 1, events, 1).value()),
        uplink(topology, 0) {}

  // Sends in packets of up to 1,000 bytes.
  void send(std::int64_t now_ns, std::int64_t bytes) {
    for (std::int64_t left = bytes; left > 0; left -= 1000) {
      const auto packet = static_cast<std::uint32_t>(std::min<std::int64_t>(left, 1000));
      network->send({now_ns}, {.from = 0, .to = 1, .bytes = packet});
    }
  }
  bool has_room(std::int64_t now_ns) { return uplink.has_room({now_ns}, *network); }
  std::int64_t free_at(std::int64_t now_ns) { return uplink.free_at({now_ns}, *network).ns; }

  EventQueue events;
  Topology topology;
  std::unique_ptr<Network> network;
  Uplink uplink;
};

constexpr std::int64_t kRoom = Uplink::kRoomBytes;

TEST(Uplink, TakesATrainAndOneMore) {
  Line line("queue { bytes: 1000000 }");
  EXPECT_TRUE(line.has_room(0));
  line.send(0, kRoom);
  EXPECT_TRUE(line.has_room(0));
  line.send(0, 1);
  EXPECT_FALSE(line.has_room(0));
}

TEST(Uplink, OnceFullTakesNothingBeforeHalfIsGone) {
  Line line("queue { bytes: 1000000 }");
  line.send(0, kRoom + 1000);
  EXPECT_FALSE(line.has_room(0));
  const std::int64_t half = line.uplink.writable_at().ns;
  EXPECT_NEAR(half, 1000 + kRoom / 2, 2);
  EXPECT_FALSE(line.has_room(half - 1));
  EXPECT_TRUE(line.has_room(half));
  line.send(half, kRoom / 2 - 2000);  // fills the whole room again, not only half of it
  EXPECT_TRUE(line.has_room(half));
}

// Cross traffic and other senders use the same line, so the line may be full again when the uplink
// expects room.
TEST(Uplink, WaitsOnWhenTheLineFilledUpMeanwhile) {
  Line line("queue { bytes: 1000000 }");
  line.send(0, kRoom + 1000);
  EXPECT_FALSE(line.has_room(0));
  const std::int64_t half = line.uplink.writable_at().ns;
  line.send(half - 1, kRoom);
  EXPECT_FALSE(line.has_room(half));
  EXPECT_NEAR(line.uplink.writable_at().ns, half + kRoom, 1002);
}

TEST(Uplink, NeverFillsAShallowQueue) {
  Line line("queue { bytes: 3000 }");
  line.send(0, 1500);
  EXPECT_TRUE(line.has_room(0));
  line.send(0, 100);
  EXPECT_FALSE(line.has_room(0));
}

TEST(Uplink, SaysWhenNoMoreThanItsRoomIsLeft) {
  Line line("queue { bytes: 1000000 }");
  EXPECT_EQ(line.free_at(5), 5);
  line.send(5, kRoom + 300);
  EXPECT_EQ(line.free_at(5), 5 + 300 + 1);
  EXPECT_EQ(line.free_at(1005), 1005);  // the first packet has left
}

TEST(Uplink, OfAnUnlimitedLinkHasRoomAlways) {
  Line line("");
  Uplink uplink;
  for (int i = 0; i < 100; ++i) line.send(0, 1000);
  EXPECT_TRUE(uplink.has_room({0}, *line.network));
  EXPECT_EQ(uplink.free_at({7}, *line.network).ns, 7);
}

}  // namespace
}  // namespace leeway::sim
