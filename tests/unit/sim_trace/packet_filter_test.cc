#include "trace/packet_filter.h"

#include <gtest/gtest.h>

namespace leeway::sim::trace {
namespace {

Packet packet_of_trace() {
  Packet packet;
  packet.set_time_ns(5'000);
  packet.set_step(queue_full);
  packet.set_from(1);
  packet.set_to(2);
  return packet;
}

bool admits(const PacketFilter& filter) {
  return filter.admits(packet_of_trace(), "uplink 1");
}

TEST(PacketFilter, AdmitsAllUnlessToldOtherwise) {
  EXPECT_TRUE(admits({}));
}

TEST(PacketFilter, EveryConditionCounts) {
  EXPECT_TRUE(admits({.from = 1, .to = 2, .step = queue_full, .link = "uplink 1"}));
  EXPECT_FALSE(admits({.from = 2}));
  EXPECT_FALSE(admits({.to = 1}));
  EXPECT_FALSE(admits({.step = sent}));
  EXPECT_FALSE(admits({.link = "uplink 10"}));
}

TEST(PacketFilter, TimesAreFromInclusiveToExclusive) {
  EXPECT_TRUE(admits({.after_ns = 5'000}));
  EXPECT_FALSE(admits({.after_ns = 5'001}));
  EXPECT_TRUE(admits({.before_ns = 5'001}));
  EXPECT_FALSE(admits({.before_ns = 5'000}));
}

TEST(PacketFilter, LossIsAnyStepThatLoses) {
  PacketFilter filter;
  ASSERT_TRUE(set_step(filter, "loss").ok());
  EXPECT_TRUE(admits(filter));
  Packet delivered_packet = packet_of_trace();
  delivered_packet.set_step(delivered);
  EXPECT_FALSE(filter.admits(delivered_packet, ""));
}

TEST(PacketFilter, UnknownStepsAreRefusedWithTheList) {
  PacketFilter filter;
  ASSERT_TRUE(set_step(filter, "queue_early").ok());
  EXPECT_EQ(filter.step, queue_early);
  const Status status = set_step(filter, "dropped");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.text().find("dropped"), std::string_view::npos);
  EXPECT_NE(status.text().find("queue_full"), std::string_view::npos);
}

}  // namespace
}  // namespace leeway::sim::trace
