#include "protocol/coding.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

constexpr Instant kSentAt{1'000'000'000};

// Returns a path that has lost `lost` of 1000 datagrams, evenly, with others in flight.
Path path_with(std::uint32_t lost) {
  Path path;
  path.configure(2000, 20ms);
  std::uint32_t received = 0;
  for (std::uint32_t sent = 1; sent <= 1000; ++sent) {
    path.take_sequence(kSentAt);
    received += (sent * lost) % 1000 >= lost;
    if (sent % 10 == 0)
      path.on_report(kSentAt + 20ms,
                     {.largest_sequence = sent, .received = received, .delay = 0us});
  }
  for (int i = 0; i < 100; ++i) path.take_sequence(kSentAt);
  return path;
}

SendFlow flow_of(std::uint32_t packets) {
  SendFlow flow;
  flow.packets = packets;
  return flow;
}

PhasePlan exact() {
  PhasePlan plan;
  plan.coded = true;
  return plan;
}

TEST(Parities, AreWorthNothingWithoutLossOrWithoutACode) {
  EXPECT_EQ(parities_for(kSentAt + 1ms, 4, exact(), flow_of(100), path_with(0)), 0u);
  EXPECT_GT(parities_for(kSentAt + 1ms, 4, exact(), flow_of(100), path_with(50)), 0u);
  EXPECT_EQ(parities_for(kSentAt + 1ms, 4, PhasePlan{}, flow_of(100), path_with(50)), 0u);
  EXPECT_EQ(parities_for(kSentAt + 1ms, 4, exact(), flow_of(limits::kEagerPackets), path_with(50)),
            0u);
}

TEST(Parities, GrowWithTheLoss) {
  EXPECT_LT(parities_for(kSentAt + 1ms, 4, exact(), flow_of(200), path_with(10)),
            parities_for(kSentAt + 1ms, 4, exact(), flow_of(200), path_with(100)));
}

TEST(Copies, GrowWithTheLossUpToALimit) {
  EXPECT_EQ(copies_for(4, flow_of(1), path_with(0)), 1u);
  const std::uint32_t at_tenth = copies_for(4, flow_of(1), path_with(100));
  EXPECT_GT(at_tenth, copies_for(4, flow_of(1), path_with(10)));
  EXPECT_LE(copies_for(1000, flow_of(4), path_with(500)), limits::kCopiesMax);
}

TEST(Copies, AreForShortExactFlowsOfPacedRanks) {
  EndpointConfig config;
  config.size = 4;
  config.paced = true;
  PhasePlan plan;
  EXPECT_TRUE(may_be_copied(config, plan, FlowKind::reduce, limits::kEagerPackets));
  EXPECT_FALSE(may_be_copied(config, plan, FlowKind::reduce, limits::kEagerPackets + 1));
  EXPECT_FALSE(may_be_copied(config, plan, FlowKind::point, 1));
  config.size = limits::kCopiedPacketsMax + 2;
  EXPECT_FALSE(may_be_copied(config, plan, FlowKind::reduce, 1)) << "too many for all";
  config.size = 4;
  config.paced = false;
  EXPECT_FALSE(may_be_copied(config, plan, FlowKind::reduce, 1));
}

}  // namespace
}  // namespace leeway::protocol
