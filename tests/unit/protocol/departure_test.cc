#include "protocol/departure.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart{1'000'000'000};
constexpr Duration kTimeout = 10ms;

Departure serving() {
  Departure departure;
  departure.serve(kStart, kTimeout);
  return departure;
}

TEST(DepartureServe, LastsUntilPeersAreQuiet) {
  const Departure departure = serving();
  EXPECT_TRUE(departure.serving());
  const auto again = [&](Duration silence, bool idle) {
    return departure.ask_again(kStart + 1s,
                               {.idle = idle, .silence = silence, .slowest = kTimeout});
  };
  EXPECT_EQ(again(79ms, true), kStart + 1s + kTimeout);
  EXPECT_EQ(again(80ms, true), std::nullopt) << "eight time-outs (WIRE 6.2)";
  EXPECT_NE(again(80ms, false), std::nullopt) << "a round is open";
}

TEST(DepartureServe, EndsAtOnceWhereAllSayThatTheyAreContent) {
  const Departure departure = serving();
  EXPECT_EQ(departure.ask_again(kStart, {.idle = true, .content = true, .slowest = kTimeout}),
            std::nullopt);
  EXPECT_NE(departure.ask_again(kStart, {.idle = false, .content = true, .slowest = kTimeout}),
            std::nullopt);
}

TEST(DepartureServe, AsksPeersOnceIdleAndAFewTimesMore) {
  Departure departure = serving();
  Departure::Group group{.idle = false, .slowest = kTimeout};
  EXPECT_FALSE(departure.asks_peers(kStart, group));
  group.idle = true;
  EXPECT_TRUE(departure.asks_peers(kStart, group));
  EXPECT_FALSE(departure.asks_peers(kStart + 9ms, group));
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(departure.asks_peers(kStart + i * kTimeout, group));
  EXPECT_FALSE(departure.asks_peers(kStart + 1s, group)) << "answers would break the quiet";
}

TEST(DepartureServe, EndsAtOnceWhereAnotherHasLeftAndNothingIsOpen) {
  const Departure departure = serving();
  EXPECT_EQ(departure.ask_again(kStart, {.idle = true, .first = false, .slowest = kTimeout}),
            std::nullopt);
}

TEST(DepartureServe, EndsInAnyCase) {
  const Departure departure = serving();
  const Departure::Group busy{.idle = false, .slowest = kTimeout};
  EXPECT_NE(departure.ask_again(kStart + 3999ms, busy), std::nullopt);
  EXPECT_EQ(departure.ask_again(kStart + 4s, busy), std::nullopt);
}

TEST(DepartureServe, LastsAsLongAsThisProcessRelays) {
  Departure departure = serving();
  const Departure::Group group{.idle = true, .first = false, .slowest = kTimeout};
  departure.on_forwarded(kStart + 10s);
  EXPECT_EQ(departure.ask_again(kStart + 11s, group), kStart + 11s + kTimeout);
  EXPECT_EQ(departure.ask_again(kStart + 11250ms, group), std::nullopt) << "1,250 ms (WIRE 6.2)";
  departure.on_forwarded(kStart + 59s);
  EXPECT_NE(departure.ask_again(kStart + 59999ms, group), std::nullopt);
  EXPECT_EQ(departure.ask_again(kStart + 60s, group), std::nullopt) << "a minute at most";
}

TEST(DepartureServe, ARelayBehindSlowLinksWaitsForEightTimeouts) {
  Departure departure = serving();
  const Departure::Group group{.idle = true, .first = false, .slowest = 500ms};
  departure.on_forwarded(kStart);
  EXPECT_NE(departure.ask_again(kStart + 3999ms, group), std::nullopt);
  EXPECT_EQ(departure.ask_again(kStart + 4s, group), std::nullopt);
}

class Parting : public ::testing::Test {
 protected:
  Parting() { departure_.part(kStart, 3); }

  Departure departure_;
  RoundTrip rtt_{10ms};
};

TEST_F(Parting, GoodByeIsSaidAtOnceAndAgainUntilItIsAnswered) {  // WIRE 6.3
  EXPECT_EQ(departure_.owe(kStart, 1, rtt_, Departure::Awaited::yes), kStart + rtt_.timeout());
  EXPECT_EQ(departure_.take_copies(1, false, 1), 1);
  EXPECT_EQ(departure_.take_copies(1, false, 1), 0) << "nothing is due";
  const Departure::Wake wake = departure_.on_wake(kStart + rtt_.timeout(), 1, rtt_);
  EXPECT_TRUE(wake.say);
  EXPECT_EQ(wake.again_at, kStart + 2 * rtt_.timeout());
  EXPECT_EQ(departure_.take_copies(1, false, 1), 3);
  EXPECT_FALSE(departure_.parted(1));
  departure_.on_answer(1);
  EXPECT_TRUE(departure_.parted(1));
}

TEST_F(Parting, TakesThePlaceOfAReport) {
  departure_.owe(kStart, 1, rtt_, Departure::Awaited::yes);
  EXPECT_EQ(departure_.take_copies(1, false, 1), 1);
  EXPECT_EQ(departure_.take_copies(1, true, 1), 1);
  departure_.on_answer(1);
  EXPECT_EQ(departure_.take_copies(1, true, 1), 0) << "it has answered";
}

TEST_F(Parting, IsGivenUpAfterTwoSecondsAndTwelveTries) {
  Instant at = departure_.owe(kStart, 1, rtt_, Departure::Awaited::yes);
  int tries = 0;
  while (!departure_.parted(1)) {
    const Departure::Wake wake = departure_.on_wake(at, 1, rtt_);
    tries += wake.say;
    if (wake.say) {
      EXPECT_GT(wake.again_at, at);
      at = wake.again_at;
    }
  }
  EXPECT_GE(tries, 12);
  EXPECT_GE(at - kStart, 2s);
  EXPECT_LE(at - kStart, 4s);
}

TEST_F(Parting, APeerThatGaveThisRankUpIsToldOnce) {
  departure_.owe(kStart, 2, rtt_, Departure::Awaited::no);
  EXPECT_TRUE(departure_.parted(2));
  EXPECT_EQ(departure_.take_copies(2, false, 1), 1);
}

// A peer that was never heard may be alive and have had nothing to say. So the good-bye to it must
// be repeated several times, in case some are lost.
TEST_F(Parting, APeerThatWasNeverHeardIsToldAsOftenButNotForSeconds) {
  Instant at = departure_.owe(kStart, 2, rtt_, Departure::Awaited::perhaps);
  int tries = 0;
  while (!departure_.parted(2)) {
    const Departure::Wake wake = departure_.on_wake(at, 2, rtt_);
    tries += wake.say;
    if (!departure_.parted(2)) at = wake.again_at;
  }
  EXPECT_EQ(tries, 12);
  EXPECT_LT(at - kStart, 40 * rtt_.timeout());
}

}  // namespace
}  // namespace leeway::protocol
