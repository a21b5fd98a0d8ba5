#include "congestion/receive_room.h"

#include <array>

#include <gtest/gtest.h>

namespace leeway::congestion {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSocket = 1'000'000;

class ReceiveRoomTest : public ::testing::Test {
 protected:
  ReceiveRoomTest() {
    for (ReceiveRoom::Arrived& peer : arrived_) peer.rtt = 20ms;
    look(0);
  }

  void look(std::uint64_t drops) {
    now_ = now_ + 10ms;
    room_.look(now_, drops_ += drops, kSocket, arrived_);
  }
  // Lets `time` pass, in which each of `peers` peers sends 100 KB every 10 ms.
  void pass(Duration time, std::size_t peers) {
    for (Duration left = time; left > 0ms; left -= 10ms) {
      for (std::size_t i = 0; i < peers; ++i) arrived_[i].bytes += 100'000;
      look(0);
    }
  }

  ReceiveRoom room_;
  std::array<ReceiveRoom::Arrived, 3> arrived_;
  Instant now_{1'000'000'000};
  std::uint64_t drops_ = 0;
};

TEST_F(ReceiveRoomTest, LimitsNothingBeforeTheFirstDrop) {
  arrived_[0].missing = 100;  // the network's
  pass(1s, 3);
  EXPECT_EQ(room_.grant(0), UINT32_MAX);
  EXPECT_EQ(room_.drops(0), 0u);
}

TEST_F(ReceiveRoomTest, DropsAreSharedOutAsTheMissingAre) {
  arrived_[0].missing = 30;
  arrived_[1].missing = 10;
  look(20);
  EXPECT_EQ(room_.drops(0), 15u);
  EXPECT_EQ(room_.drops(1), 5u);
  EXPECT_EQ(room_.drops(2), 0u);
}

TEST_F(ReceiveRoomTest, NobodyIsToldOfMoreThanItMisses) {
  arrived_[0].missing = 3;
  look(20);
  EXPECT_EQ(room_.drops(0), 3u);
}

// Dropped datagrams at the end of a train are missed only when the next datagram arrives.
TEST_F(ReceiveRoomTest, ADropThatIsNotMissedYetIsToldLater) {
  look(5);
  EXPECT_EQ(room_.drops(2), 0u);
  arrived_[2].missing = 4;
  look(0);
  EXPECT_EQ(room_.drops(2), 4u);
  pass(2s, 1);
  arrived_[2].missing = 10;
  look(0);
  EXPECT_EQ(room_.drops(2), 4u) << "what is missed so much later is another's";
}

TEST_F(ReceiveRoomTest, WhatWasOvertakenIsNotMissed) {
  arrived_[0].missing = 5;
  look(0);
  arrived_[0].missing = 0;
  arrived_[1].missing = 5;
  look(5);
  EXPECT_EQ(room_.drops(0), 0u);
  EXPECT_EQ(room_.drops(1), 5u);
}

// The two senders share 95 % of the bytes that the host reads in a round trip, and half of the
// buffer.
TEST_F(ReceiveRoomTest, ADropMakesGrantsOfWhatTheHostTook) {
  pass(500ms, 2);  // 20 MB/s
  arrived_[0].missing = 10;
  look(10);
  EXPECT_NEAR(room_.grant(0), (0.95 * 20e6 * 0.02 + 500e3) / 2, 1e3);
  EXPECT_EQ(room_.grant(0), room_.grant(1));
}

TEST_F(ReceiveRoomTest, FurtherDropsHalveTheRestAndTheirEndRaisesIt) {
  pass(500ms, 2);
  look(10);
  const std::uint32_t first = room_.grant(0);
  pass(100ms, 2);
  look(10);
  const std::uint32_t second = room_.grant(0);
  EXPECT_LT(second, first - 80'000);
  pass(300ms, 2);
  EXPECT_GT(room_.grant(0), second);
  pass(10s, 2);
  EXPECT_EQ(room_.grant(0), UINT32_MAX);
}

TEST_F(ReceiveRoomTest, DropsWithoutEndLeaveAPartOfTheBuffer) {
  for (int i = 0; i < 100; ++i) {
    pass(100ms, 1);
    look(10);
  }
  EXPECT_GE(room_.grant(0), kSocket / 16);
}

}  // namespace
}  // namespace leeway::congestion
