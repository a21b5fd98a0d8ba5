#include "collective/pacing.h"

#include <gtest/gtest.h>

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;

constexpr congestion::Settings kFixed{.control = CongestionControl::fixed,
                                      .rate_bits_per_second = 8'000'000};

// Slot 1 is this process itself, so its path has no window.
class PacingOfTwoPaths : public ::testing::Test {
 protected:
  PacingOfTwoPaths() {
    paths.meet(0).configure(16, 1ms);
    paths.meet(1);
  }
  // Makes a train of datagrams of 1,000 bytes.
  const protocol::TrainBuffer& train(Rank to, std::uint32_t datagrams) {
    buffer->start(to);
    for (std::uint32_t i = 0; i < datagrams; ++i) {
      if (to != kEveryRank) paths[to].take_sequence(now);
      buffer->append(1'000, {});
    }
    return *buffer;
  }

  Instant now{1'000'000'000};
  Paths paths;
  Pacing pacing{paths};
  std::unique_ptr<protocol::TrainBuffer> buffer = std::make_unique<protocol::TrainBuffer>();
};

TEST_F(PacingOfTwoPaths, BeginsOnce) {
  EXPECT_FALSE(pacing.begin(now, {})) << "no control";
  EXPECT_EQ(pacing.uplink(), nullptr);
  pacing.charge(now, 1'000);  // of no effect
  EXPECT_TRUE(pacing.begin(now, kFixed));
  EXPECT_FALSE(pacing.begin(now, kFixed));
  ASSERT_NE(pacing.uplink(), nullptr);
  EXPECT_TRUE(paths[0].take_question()) << "a path that was in use is asked for a report";
  EXPECT_FALSE(paths[1].take_question());
}

TEST_F(PacingOfTwoPaths, ALaneSharesThePaceOfTheFirst) {
  Paths further;
  Pacing lane(further);
  EXPECT_FALSE(lane.begin_with(now, pacing)) << "the first is not paced";
  ASSERT_TRUE(pacing.begin(now, kFixed));
  EXPECT_TRUE(lane.begin_with(now, pacing));
  EXPECT_FALSE(lane.begin_with(now, pacing));
  EXPECT_EQ(lane.uplink()->pace().bits_per_second, 8e6);
}

TEST_F(PacingOfTwoPaths, WhatLeavesClosesTheUplinkForItsTime) {
  ASSERT_TRUE(pacing.begin(now, kFixed));
  EXPECT_TRUE(pacing.uplink()->open(now));
  pacing.on_train(now, train(0, 20));  // 20 ms
  EXPECT_EQ(pacing.uplink()->in_flight_bytes(), 20'000u);
  EXPECT_FALSE(pacing.uplink()->open(now));
  EXPECT_TRUE(pacing.uplink()->open(now + 21ms));
  pacing.charge(now + 21ms, 20'000);
  EXPECT_FALSE(pacing.uplink()->open(now + 21ms));
  pacing.on_train(now + 50ms, train(kEveryRank, 20));
  EXPECT_FALSE(pacing.uplink()->open(now + 50ms));
  EXPECT_EQ(pacing.uplink()->in_flight_bytes(), 20'000u) << "no path counts the rest";
}

TEST_F(PacingOfTwoPaths, AReportTakesDatagramsOutOfFlight) {
  ASSERT_TRUE(pacing.begin(now, kFixed));
  pacing.on_train(now, train(0, 4));
  ASSERT_TRUE(paths[0].on_report(now + 1ms,
                                 {.largest_sequence = 4, .received = 4, .received_bytes = 4'000}));
  pacing.on_report(now + 1ms, 0);
  EXPECT_EQ(pacing.uplink()->in_flight_bytes(), 0u);
}

TEST_F(PacingOfTwoPaths, PeersHearOfTheHostsDrops) {
  EXPECT_FALSE(pacing.wants_host_drops(now)) << "nothing is paced";
  ASSERT_TRUE(pacing.begin(now, kFixed));
  EXPECT_TRUE(pacing.wants_host_drops(now));
  pacing.on_host_drops(now, 0, 100'000);
  EXPECT_FALSE(pacing.wants_host_drops(now + 9ms));
  EXPECT_TRUE(pacing.wants_host_drops(now + 10ms));
  paths[0].on_arrival(now, 4, 1'000);  // three before it are missing
  pacing.on_host_drops(now + 10ms, 3, 100'000);
  EXPECT_EQ(paths[0].host_drops(), 3);
  EXPECT_LT(paths[0].grant(), 100'000u);
}

}  // namespace
}  // namespace leeway::collective
