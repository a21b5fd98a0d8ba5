#include "protocol/path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "protocol/train_buffer.h"
#include "wire/packet.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

Path path_of(std::uint32_t window) {
  Path path;
  path.configure(window, 10ms);
  return path;
}
Instant at_time(std::int64_t us) {
  return Instant{1'000'000'000 + us * 1000};
}

TEST(PathCredit, IsTheWindowLessWhatIsInFlight) {
  Path path = path_of(8);
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(path.credit(), 8 - i);
    EXPECT_EQ(path.take_sequence(at_time(i)), i + 1);
  }
  EXPECT_EQ(path.credit(), 0u);
  path.take_sequence(at_time(9));  // control goes beyond
  EXPECT_EQ(path.in_flight(), 9u);
  EXPECT_EQ(path.credit(), 0u);
}

TEST(PathCredit, OfATinyWindowIsTwo) {
  EXPECT_EQ(path_of(0).credit(), 2u);
}

// Required by WIRE 3.16.
TEST(PathCredit, AGrantLowersItAndNeverEndsIt) {
  Path path = path_of(16);
  path.limit(6);
  EXPECT_EQ(path.credit(), 6u);
  EXPECT_EQ(path.window(), 16u);
  path.limit(0);
  EXPECT_EQ(path.credit(), limits::kGrantedDatagramsMin);
  path.limit(1000);
  EXPECT_EQ(path.credit(), 16u) << "no more than the window";
}

TEST(PathCredit, HalfOfAGrantIsWorthAQuestion) {
  Path path = path_of(16);
  for (int i = 0; i < 4; ++i) path.take_sequence(at_time(i));
  EXPECT_FALSE(path.nears_limit()) << "nothing limits it";
  path.limit(9);
  EXPECT_FALSE(path.nears_limit());
  path.take_sequence(at_time(5));
  EXPECT_TRUE(path.nears_limit());
}

TEST(PathReport, GivesBackCreditAndWritesOffWhatWasLost) {
  Path path = path_of(8);
  for (int i = 0; i < 8; ++i) path.take_sequence(at_time(i));
  EXPECT_TRUE(path.on_report(at_time(100), {.largest_sequence = 5, .received = 3, .delay = 0us}));
  EXPECT_EQ(path.in_flight(), 3u) << "1 .. 5 are settled, though two of them were lost";
  EXPECT_EQ(path.credit(), 5u);
}

TEST(PathReport, ClaimOfMoreThanWasSentChangesNothing) {
  Path path = path_of(8);
  for (int i = 0; i < 3; ++i) path.take_sequence(at_time(i));
  EXPECT_FALSE(path.on_report(at_time(100), {.largest_sequence = 4, .received = 4, .delay = 0us}));
  EXPECT_FALSE(
      path.on_report(at_time(100), {.largest_sequence = 0x7FFFFFFF, .received = 4, .delay = 0us}));
  EXPECT_EQ(path.in_flight(), 3u);
  EXPECT_FALSE(path.rtt.measured());
  EXPECT_TRUE(path.on_report(at_time(100), {.largest_sequence = 3, .received = 3, .delay = 0us}));
}

TEST(PathReport, RepeatedOrOvertakenOnesChangeNothing) {
  Path path = path_of(8);
  for (int i = 0; i < 6; ++i) path.take_sequence(at_time(0));
  EXPECT_TRUE(path.on_report(at_time(100), {.largest_sequence = 5, .received = 5, .delay = 0us}));
  const Duration measured = path.rtt.smoothed();
  EXPECT_TRUE(path.on_report(at_time(500), {.largest_sequence = 5, .received = 5, .delay = 0us}));
  EXPECT_TRUE(path.on_report(at_time(500), {.largest_sequence = 2, .received = 2, .delay = 0us}));
  EXPECT_EQ(path.in_flight(), 1u);
  EXPECT_EQ(path.rtt.smoothed(), measured);
}

TEST(PathReport, RoundTripIsThatOfTheNamedDatagramLessThePeersDelay) {
  Path path = path_of(8);
  path.take_sequence(at_time(0));
  path.take_sequence(at_time(300));
  path.take_sequence(at_time(900));
  EXPECT_TRUE(
      path.on_report(at_time(1000), {.largest_sequence = 2, .received = 2, .delay = 500us}));
  EXPECT_EQ(path.rtt.smoothed(), 200us);
}

TEST(PathPace, SaysHowManyLeaveInARoundTrip) {
  Path path = path_of(1000);
  EXPECT_EQ(path.sent_in_round_trip(at_time(0)), 0.0);
  path.take_sequence(at_time(0));
  ASSERT_TRUE(path.on_report(at_time(10'000), {.largest_sequence = 1, .received = 1}));
  ASSERT_EQ(path.rtt.smoothed(), 10ms);
  // 40 datagrams leave in 4 ms and then none. At this rate 100 would leave in a round trip of 10
  // ms.
  for (int i = 0; i < 40; ++i) path.take_sequence(at_time(20'000 + 100 * i));
  EXPECT_NEAR(path.sent_in_round_trip(at_time(24'000)), 100.0, 1e-9);
  // 40 more leave at once, in one train. The 80 are then scaled up to a round trip by 4 at most.
  for (int i = 0; i < 40; ++i) path.take_sequence(at_time(24'000));
  EXPECT_LE(path.sent_in_round_trip(at_time(24'000)), 4.0 * 80);
  // 400 datagrams leave in 40 ms, and none of them is reported yet.
  ASSERT_TRUE(path.on_report(at_time(34'000), {.largest_sequence = 81, .received = 81}));
  for (int i = 0; i < 400; ++i) path.take_sequence(at_time(40'000 + 100 * i));
  EXPECT_NEAR(path.sent_in_round_trip(at_time(80'000)), 100.0, 10.0);
}

TEST(PathReport, DeliveredFractionFollowsTheLoss) {
  Path path = path_of(64);
  EXPECT_EQ(path.delivered_fraction(), 1.0);
  std::uint32_t received = 0;
  for (std::uint32_t round = 1; round <= 100; ++round) {
    for (int i = 0; i < 10; ++i) path.take_sequence(at_time(round));
    received += 8;
    ASSERT_TRUE(path.on_report(
        at_time(round), {.largest_sequence = round * 10, .received = received, .delay = 0us}));
  }
  EXPECT_NEAR(path.delivered_fraction(), 0.8, 0.001);
}

// The first call may be short, so losses must count although there are few datagrams.
TEST(PathReport, TheFirstLossesAreBelieved) {
  Path path = path_of(1000);
  for (int i = 0; i < 100; ++i) path.take_sequence(at_time(i));
  ASSERT_TRUE(
      path.on_report(at_time(200), {.largest_sequence = 100, .received = 90, .delay = 0us}));
  EXPECT_GT(path.loss_at_most(), 0.1) << "with a standard error and a half";
  EXPECT_EQ(path.copies(), 1) << "is it lossy at_time all?";
}

// A long line has a large window, in which thousands of datagrams may be lost before losses show.
TEST(PathReport, LossesAreForgottenAlikeWhateverTheWindow) {
  Path path = path_of(50'000);
  std::uint32_t sent = 0, received = 0;
  const auto report = [&](std::uint32_t arrived) {
    for (int i = 0; i < 100; ++i) path.take_sequence(at_time(sent));
    sent += 100;
    received += arrived;
    ASSERT_TRUE(path.on_report(at_time(sent),
                               {.largest_sequence = sent, .received = received, .delay = 0us}));
  };
  for (int i = 0; i < 200; ++i) report(100);
  for (int i = 0; i < 50; ++i) report(80);
  EXPECT_NEAR(path.delivered_fraction(), 0.8, 0.01);
}

// The sending times of all datagrams in flight are kept, so a report may give the round trip of an
// early one.
TEST(PathReport, RoundTripsAreThoseOfDatagramsLongAgo) {
  Path path = path_of(20'000);
  for (int i = 0; i < 15'000; ++i) path.take_sequence(at_time(i));
  ASSERT_TRUE(
      path.on_report(at_time(50'000), {.largest_sequence = 1, .received = 1, .delay = 0us}));
  EXPECT_EQ(path.rtt.smoothed(), 50'000us);
  Path another = path_of(20'000);
  for (int i = 0; i < 15'000; ++i) another.take_sequence(at_time(i));
  ASSERT_TRUE(another.on_report(at_time(50'000),
                                {.largest_sequence = 14'001, .received = 1, .delay = 0us}));
  EXPECT_EQ(another.rtt.smoothed(), 36'000us);
}

TEST(PathCopies, AreAsManyMoreAsWaitsWereLonger) {
  Path path = path_of(64);
  for (const auto& [tries, copies] : {std::pair{0u, 1}, {1u, 2}, {2u, 4}, {4u, 16}, {40u, 16}})
    EXPECT_EQ(path.copies(tries), copies) << tries;
  for (int i = 0; i < 40; ++i) path.take_sequence(at_time(i));
  ASSERT_TRUE(path.on_report(at_time(100), {.largest_sequence = 40, .received = 30, .delay = 0us}));
  for (const auto& [tries, copies] : {std::pair{0u, 3}, {1u, 3}, {2u, 4}, {40u, 16}})
    EXPECT_EQ(path.copies(tries), copies) << tries;
}

// Sends 20,000 datagrams and reports every 20. Each is lost independently, or arrives up to
// `spread` datagrams late.
Path path_with(double loss, std::uint32_t spread) {
  constexpr std::uint32_t kCount = 20'000;
  Path path = path_of(700);
  std::mt19937 random(5);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arrivals;  // when, which
  for (std::uint32_t n = 1; n <= kCount; ++n) {
    path.take_sequence(at_time(n));
    if (std::bernoulli_distribution(loss)(random)) continue;
    arrivals.emplace_back(n + (spread == 0 ? 0 : random() % spread), n);
  }
  std::sort(arrivals.begin(), arrivals.end());
  PathReport report;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    report.largest_sequence = std::max(report.largest_sequence, arrivals[i].second);
    ++report.received;
    if (i % 20 != 19) continue;
    EXPECT_TRUE(path.on_report(at_time(kCount + arrivals[i].first), report));
  }
  return path;
}

TEST(PathReport, LossIsKnownToAStandardError) {
  EXPECT_EQ(path_with(0.0, 0).loss_at_most(), 0.0);
  for (const double loss : {0.005, 0.05, 0.2}) {
    const double error = std::sqrt(loss / 1400);
    EXPECT_NEAR(path_with(loss, 0).loss_at_most(), loss + 1.5 * error, 3 * error) << loss;
  }
}

TEST(PathReport, WhatIsOvertakenIsNotLost) {
  for (const std::uint32_t spread : {2, 10, 60}) {
    EXPECT_EQ(path_with(0.0, spread).loss_at_most(), 0.0) << spread;
    const double seen = path_with(0.1, spread).loss_at_most();
    EXPECT_GT(seen, 0.1 - 1.5 * spread / 700 - 0.03) << spread;
    EXPECT_LT(seen, 0.1 + 0.03) << spread;
  }
}

TEST(PathReport, MoreReceivedThanCoveredCannotExceedOne) {
  Path path = path_of(8);
  for (int i = 0; i < 4; ++i) path.take_sequence(at_time(0));
  EXPECT_TRUE(path.on_report(
      at_time(1),
      {.largest_sequence = 4, .received = 4000, .delay = 0us}));  // network copies, or a lie
  EXPECT_LE(path.delivered_fraction(), 1.0);
}

TEST(PathArrival, AsksForAReportEveryQuarterWindow) {
  Path path = path_of(32);
  for (std::uint32_t i = 1; i < 8; ++i) {
    path.on_arrival(at_time(i), i, 100);
    EXPECT_FALSE(path.report_wanted());
  }
  path.on_arrival(at_time(8), 8, 100);
  EXPECT_TRUE(path.report_wanted());
  path.on_reported();
  EXPECT_FALSE(path.report_wanted());
}

TEST(PathCredit, ComesBackToAllWhoFoundNone) {
  Path path = path_of(4);
  for (int i = 0; i < 4; ++i) path.take_sequence(at_time(i));
  EXPECT_FALSE(path.take_unblocked());
  path.note_blocked();
  EXPECT_FALSE(path.take_unblocked()) << "there is none yet";
  EXPECT_TRUE(path.on_report(at_time(9), {.largest_sequence = 2, .received = 2, .delay = 0us}));
  EXPECT_TRUE(path.take_unblocked());
  EXPECT_FALSE(path.take_unblocked()) << "told once";
}

// A paced process has a large window, but peers with small windows wait for its reports.
TEST(PathConfigure, ReportsAreDueByThePeersWindow) {
  Path path;
  path.configure(64, 10ms, 8);
  EXPECT_EQ(path.window(), 64u);
  EXPECT_EQ(path.report_every(), 2u);
}

TEST(PathConfigure, TheSmallestWindowOfAllCommunicatorsCounts) {
  Path path = path_of(8);
  path.configure(64, 10ms);
  EXPECT_EQ(path.window(), 8u);
  path.configure(4, 10ms);
  EXPECT_EQ(path.window(), 4u);
}

TEST(PathArrival, CopiesAskForNoReport) {
  Path path = path_of(32);
  for (int i = 0; i < 100; ++i) path.on_arrival(at_time(i), 7, 100);
  EXPECT_FALSE(path.report_wanted());
  path.on_arrival(at_time(100), 8, 100);
  EXPECT_TRUE(path.report_wanted());
}

TEST(PathArrival, RemembersTheLargestWhateverTheOrder) {
  Path path = path_of(32);
  path.on_arrival(at_time(1), 3, 100);
  path.on_arrival(at_time(2), 5, 100);
  path.on_arrival(at_time(7), 4, 100);
  EXPECT_EQ(path.largest_seen(), 5u);
  EXPECT_EQ(path.received(), 3u);
  EXPECT_EQ(path.since_largest(at_time(12)), 10us);
}

TEST(PathArrival, NumbersMayWrap) {
  Path path = path_of(32);
  path.on_arrival(at_time(1), 0xFFFFFFFE, 100);
  path.on_arrival(at_time(2), 0xFFFFFFFF, 100);
  path.on_arrival(at_time(3), 1, 100);
  EXPECT_EQ(path.largest_seen(), 1u);
  path.on_arrival(at_time(4), 0xFFFFFFFD, 100);
  EXPECT_EQ(path.largest_seen(), 1u);
}

TEST(SerialNumber, AfterComparesAcrossTheWrap) {
  static_assert(after(1, 0) && !after(0, 1) && !after(5, 5));
  static_assert(after(0, 0xFFFFFFFF) && after(10, 0xFFFFFFF0) && !after(0xFFFFFFF0, 10));
  static_assert(after(0x7FFFFFFF, 0) && !after(0x80000001, 0));
}

// An answer of a process without the communicator proves only life (WIRE 6.9).
TEST(PathAlive, IsASignOfLifeAndNothingElse) {
  Path path = path_of(8);
  for (int i = 0; i < 3; ++i) path.take_sequence(at_time(i));
  EXPECT_TRUE(path.on_alive(at_time(100), 2));
  EXPECT_EQ(path.heard_at(), at_time(100));
  EXPECT_EQ(path.in_flight(), 3u);
  EXPECT_EQ(path.received(), 0u);
  EXPECT_EQ(path.largest_seen(), 0u);
}

TEST(PathAlive, AnAnswerToWhatWasNeverSentIsNone) {
  Path path = path_of(8);
  for (int i = 0; i < 3; ++i) path.take_sequence(at_time(i));
  EXPECT_FALSE(path.on_alive(at_time(100), 4));
  EXPECT_FALSE(path.on_alive(at_time(100), 0x7FFFFFFF));
  EXPECT_EQ(path.heard_at(), Instant{0});
  EXPECT_TRUE(path.on_alive(at_time(100), 3));
}

TEST(Path, AQuestionIsTakenOnce) {
  Path path;
  path.configure(16, 1ms);
  EXPECT_FALSE(path.take_question());
  path.ask();
  EXPECT_TRUE(path.take_question());
  EXPECT_FALSE(path.take_question());
  EXPECT_TRUE(path.take_asked());
  EXPECT_FALSE(path.take_asked());
}

TEST(Path, CountsBytesAndKeepsTheTimeOfTheLargest) {
  Path path;
  path.configure(16, 1ms);
  path.on_arrival(at_time(3), 2, 1000);
  path.on_arrival(at_time(5), 1, 500);
  EXPECT_EQ(path.received_bytes(), 1500u);
  EXPECT_EQ(path.largest_arrived_at(), at_time(3));
}

// Before the ranks of a host have agreed on sizes, datagrams may have shared memory's length. Yet
// three copies of a control datagram must fit one train.
TEST(PathPieces, AreThoseOfAFrameAtMost) {
  Path path;
  path.size.configure({.most = 8972});
  const std::size_t pieces = path.pieces(limits::kDatagramBytesMax);
  EXPECT_EQ(pieces, path.pieces(limits::kFrameBytesMax));
  const auto train = std::make_unique<TrainBuffer>();
  train->start(1, pieces);
  for (int copy = 0; copy < 3; ++copy) {
    ASSERT_TRUE(train->fits(wire::kPrefixBytes));
    train->append(wire::kPrefixBytes, {});
  }
}

}  // namespace
}  // namespace leeway::protocol
