// Tests the uplink that lanes of a process share.
#include "congestion/uplink.h"

#include <gtest/gtest.h>

#include <memory>

namespace leeway::congestion {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kTrainBytes = 3'000;

// A controller with a fixed pace and a window.
class Paced final : public Controller {
 public:
  explicit Paced(std::uint64_t window) : window_(window) {}
  void on_sample(const Sample&) override {}
  Pace pace() const override {
    return {.bits_per_second = 24e6, .in_flight_bytes = window_, .quantum_bytes = kTrainBytes};
  }
  bool spares_near() const override { return false; }

 private:
  const std::uint64_t window_;
};

struct TwoLanes : ::testing::Test {
  void make(std::uint64_t window = UINT64_MAX) {
    first = std::make_unique<Uplink>(std::make_unique<Paced>(window));
    first->make_link(1, 64);
    second = std::make_unique<Uplink>(first.get());
    second->make_link(1, 64);
    first->wake_by([this] { ++first_woken; });
    second->wake_by([this] { ++second_woken; });
  }
  void send(Uplink& lane) {
    std::uint32_t& last = &lane == first.get() ? first_sent : second_sent;
    last += 2;
    lane.on_sent(now, 1,
                 {.last = last,
                  .datagrams = 2,
                  .segment_bytes = kTrainBytes / 2,
                  .total_bytes = kTrainBytes});
  }
  // Sends if the lane is open; otherwise waits as a node with data does.
  bool try_to_send(Uplink& lane) {
    if (!lane.open(now)) {
      lane.note_held_back();
      return false;
    }
    send(lane);
    return true;
  }

  Instant now{1'000'000'000};
  std::unique_ptr<Uplink> first;
  std::unique_ptr<Uplink> second;
  std::uint32_t first_sent = 0;
  std::uint32_t second_sent = 0;
  int first_woken = 0;
  int second_woken = 0;
};

TEST_F(TwoLanes, WhatOneSendsTheOtherWaitsFor) {
  make();
  while (try_to_send(*first)) {
  }
  EXPECT_FALSE(second->open(now));
  EXPECT_EQ(second->in_flight_bytes(), first->in_flight_bytes());
  EXPECT_GT(first->in_flight_bytes(), 0u);
}

// A train takes a millisecond to leave. Lanes that wait must take turns.
TEST_F(TwoLanes, WhoWaitsLongestIsNext) {
  make();
  while (try_to_send(*first)) {
  }
  EXPECT_FALSE(try_to_send(*second));
  for (int turn = 0; turn < 4; ++turn) {
    Uplink& next = turn % 2 == 0 ? *first : *second;
    Uplink& other = turn % 2 == 0 ? *second : *first;
    now = next.next_wake();
    EXPECT_LT(now, other.next_wake());
    EXPECT_FALSE(try_to_send(other)) << turn;
    EXPECT_TRUE(try_to_send(next)) << turn;
    EXPECT_FALSE(try_to_send(next)) << turn;
  }
}

TEST_F(TwoLanes, WhoseTurnItIsIsNotWaitedForLong) {
  make();
  while (try_to_send(*first)) {
  }
  EXPECT_FALSE(try_to_send(*second));
  now = second->next_wake();
  EXPECT_GT(now, first->next_wake());
  EXPECT_TRUE(try_to_send(*second));
}

// A lane may miss its turn because its socket is full. It must be woken once, and not again before
// it asks.
TEST_F(TwoLanes, WhoDoesNotTakeItsTurnIsNotWokenForItAllTheTime) {
  make();
  while (try_to_send(*first)) {
  }
  EXPECT_FALSE(try_to_send(*second));
  for (Uplink* const lane : {first.get(), second.get()}) {
    now = lane->next_wake();
    lane->on_wake(now);
    EXPECT_GT(lane->next_wake(), now);
  }
  EXPECT_TRUE(try_to_send(*first));
  EXPECT_FALSE(try_to_send(*second));
  EXPECT_LT(second->next_wake(), now + 10ms) << "held back anew";
}

TEST_F(TwoLanes, WhoHasNothingToSendHasNoTurn) {
  make();
  while (try_to_send(*first)) {
  }
  EXPECT_FALSE(try_to_send(*second));
  first->note_idle();
  now = second->next_wake();
  EXPECT_TRUE(try_to_send(*second));
}

TEST_F(TwoLanes, AControlDatagramCostsNoTurn) {
  make();
  while (try_to_send(*first)) {
  }
  EXPECT_FALSE(try_to_send(*second));
  send(*first);
  now = first->next_wake();
  EXPECT_FALSE(second->open(now));
  EXPECT_TRUE(try_to_send(*first));
}

TEST_F(TwoLanes, AReportThatOpensTheWindowWakesTheOther) {
  make(2 * kTrainBytes);
  first->on_asked(now, 1);
  while (first->in_flight_bytes() < 2 * kTrainBytes) {
    if (!try_to_send(*first)) now = first->next_wake();
  }
  EXPECT_FALSE(try_to_send(*second));
  now += 20ms;
  EXPECT_GT(second->next_wake(), now);  // only a report opens it
  first->on_report(now, 1,
                   {.largest = first_sent,
                    .received = first_sent,
                    .received_bytes = 2 * kTrainBytes,
                    .arrived_us = static_cast<std::uint32_t>(now.ns / 1000) - 10'000});
  EXPECT_EQ(second_woken, 1);
  EXPECT_EQ(first_woken, 0);
  EXPECT_TRUE(try_to_send(*second));
}

TEST_F(TwoLanes, WhatALaneThatEndsHadUnderWayIsWaitedForNoMore) {
  make(2 * kTrainBytes);
  send(*first);
  send(*second);
  EXPECT_EQ(first->in_flight_bytes(), 2 * kTrainBytes);
  second.reset();
  EXPECT_EQ(first->in_flight_bytes(), kTrainBytes);
  now += 20ms;
  EXPECT_TRUE(try_to_send(*first));
}

// Threads read the same clock, but may call the uplink in another order, so a call may bring an
// earlier time than the call before.
TEST_F(TwoLanes, TimeDoesNotGoBack) {
  make();
  now += 10ms;
  while (try_to_send(*first)) {
  }
  const Instant before = first->next_wake();
  now = now - 1ms;
  EXPECT_FALSE(second->open(now));
  second->on_group_sent(now, kTrainBytes);
  EXPECT_EQ(first->next_wake(), before + 1ms);
}

TEST(Uplink, ANodeAloneHasTheBundleToItself) {
  Uplink alone(std::make_unique<Paced>(UINT64_MAX));
  UplinkBundle bundle(std::make_unique<Paced>(UINT64_MAX));
  alone.make_link(3, 64);
  bundle.make_link(0, 64);
  const Instant now{1'000'000'000};
  const Sent sent{.last = 2, .datagrams = 2, .segment_bytes = 1'500, .total_bytes = kTrainBytes};
  for (int i = 0; i < 2; ++i) {
    alone.on_sent(now, 3, sent);
    bundle.on_sent(now, 0, sent);
  }
  alone.note_held_back();
  bundle.note_held_back();
  EXPECT_EQ(alone.open(now), bundle.open(now));
  EXPECT_EQ(alone.next_wake(), bundle.next_wake());
  EXPECT_EQ(alone.in_flight_bytes(), bundle.in_flight_bytes());
}

}  // namespace
}  // namespace leeway::congestion
