#include "protocol/link.h"

#include <gtest/gtest.h>

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

Link link_of(std::uint32_t window) {
  Link link;
  link.configure(window, 10ms);
  return link;
}
Instant at(std::int64_t us) {
  return Instant{1'000'000'000 + us * 1000};
}

TEST(LinkCredit, IsTheWindowLessWhatIsInFlight) {
  Link link = link_of(8);
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(link.credit(), 8 - i);
    EXPECT_EQ(link.take_sequence(at(i)), i + 1);
  }
  EXPECT_EQ(link.credit(), 0u);
  link.take_sequence(at(9));  // control goes beyond
  EXPECT_EQ(link.in_flight(), 9u);
  EXPECT_EQ(link.credit(), 0u);
}

TEST(LinkCredit, OfATinyWindowIsTwo) {
  EXPECT_EQ(link_of(0).credit(), 2u);
}

TEST(LinkReport, GivesBackCreditAndWritesOffWhatWasLost) {
  Link link = link_of(8);
  for (int i = 0; i < 8; ++i) link.take_sequence(at(i));
  EXPECT_TRUE(link.on_report(at(100), 5, 3, 0us));
  EXPECT_EQ(link.in_flight(), 3u) << "1 .. 5 are settled, though two of them were lost";
  EXPECT_EQ(link.credit(), 5u);
}

TEST(LinkReport, ClaimOfMoreThanWasSentChangesNothing) {
  Link link = link_of(8);
  for (int i = 0; i < 3; ++i) link.take_sequence(at(i));
  EXPECT_FALSE(link.on_report(at(100), 4, 4, 0us));
  EXPECT_FALSE(link.on_report(at(100), 0x7FFFFFFF, 4, 0us));
  EXPECT_EQ(link.in_flight(), 3u);
  EXPECT_FALSE(link.rtt.measured());
  EXPECT_TRUE(link.on_report(at(100), 3, 3, 0us));
}

TEST(LinkReport, RepeatedOrOvertakenOnesChangeNothing) {
  Link link = link_of(8);
  for (int i = 0; i < 6; ++i) link.take_sequence(at(0));
  EXPECT_TRUE(link.on_report(at(100), 5, 5, 0us));
  const Duration measured = link.rtt.smoothed();
  EXPECT_TRUE(link.on_report(at(500), 5, 5, 0us));
  EXPECT_TRUE(link.on_report(at(500), 2, 2, 0us));
  EXPECT_EQ(link.in_flight(), 1u);
  EXPECT_EQ(link.rtt.smoothed(), measured);
}

TEST(LinkReport, RoundTripIsThatOfTheNamedDatagramLessThePeersDelay) {
  Link link = link_of(8);
  link.take_sequence(at(0));
  link.take_sequence(at(300));
  link.take_sequence(at(900));
  EXPECT_TRUE(link.on_report(at(1000), 2, 2, 500us));
  EXPECT_EQ(link.rtt.smoothed(), 200us);
}

TEST(LinkReport, DeliveredFractionFollowsTheLoss) {
  Link link = link_of(64);
  EXPECT_EQ(link.delivered_fraction(), 1.0);
  std::uint32_t received = 0;
  for (std::uint32_t round = 1; round <= 100; ++round) {
    for (int i = 0; i < 10; ++i) link.take_sequence(at(round));
    received += 8;
    ASSERT_TRUE(link.on_report(at(round), round * 10, received, 0us));
  }
  EXPECT_NEAR(link.delivered_fraction(), 0.8, 0.001);
}

TEST(LinkReport, MoreReceivedThanCoveredCannotExceedOne) {
  Link link = link_of(8);
  for (int i = 0; i < 4; ++i) link.take_sequence(at(0));
  EXPECT_TRUE(link.on_report(at(1), 4, 4000, 0us));  // duplicates, or a lie
  EXPECT_LE(link.delivered_fraction(), 1.0);
}

TEST(LinkArrival, AsksForAReportEveryQuarterWindow) {
  Link link = link_of(32);
  for (std::uint32_t i = 1; i < 8; ++i) {
    link.on_arrival(at(i), i);
    EXPECT_FALSE(link.report_wanted());
  }
  link.on_arrival(at(8), 8);
  EXPECT_TRUE(link.report_wanted());
  link.on_reported();
  EXPECT_FALSE(link.report_wanted());
}

TEST(LinkReport, ProbesGrowRarerUntilThereIsCredit) {
  Link link = link_of(4);
  for (int i = 0; i < 20; ++i) link.take_sequence(at(0));
  link.probe_tries = 3;
  EXPECT_TRUE(link.on_report(at(1), 10, 10, 0us));
  EXPECT_EQ(link.credit(), 0u);
  EXPECT_EQ(link.probe_tries, 3u);
  EXPECT_TRUE(link.on_report(at(2), 18, 18, 0us));
  EXPECT_EQ(link.credit(), 2u);
  EXPECT_EQ(link.probe_tries, 0u);
}

TEST(LinkArrival, CopiesAskForNoReport) {
  Link link = link_of(32);
  for (int i = 0; i < 100; ++i) link.on_arrival(at(i), 7);
  EXPECT_FALSE(link.report_wanted());
  link.on_arrival(at(100), 8);
  EXPECT_TRUE(link.report_wanted());
}

TEST(LinkArrival, RemembersTheLargestWhateverTheOrder) {
  Link link = link_of(32);
  link.on_arrival(at(1), 3);
  link.on_arrival(at(2), 5);
  link.on_arrival(at(7), 4);
  EXPECT_EQ(link.largest_seen(), 5u);
  EXPECT_EQ(link.received(), 3u);
  EXPECT_EQ(link.since_largest(at(12)), 10us);
}

TEST(LinkArrival, NumbersMayWrap) {
  Link link = link_of(32);
  link.on_arrival(at(1), 0xFFFFFFFE);
  link.on_arrival(at(2), 0xFFFFFFFF);
  link.on_arrival(at(3), 1);
  EXPECT_EQ(link.largest_seen(), 1u);
  link.on_arrival(at(4), 0xFFFFFFFD);
  EXPECT_EQ(link.largest_seen(), 1u);
}

TEST(SerialNumber, AfterComparesAcrossTheWrap) {
  static_assert(after(1, 0) && !after(0, 1) && !after(5, 5));
  static_assert(after(0, 0xFFFFFFFF) && after(10, 0xFFFFFFF0) && !after(0xFFFFFFF0, 10));
  static_assert(after(0x7FFFFFFF, 0) && !after(0x80000001, 0));
}

}  // namespace
}  // namespace leeway::protocol
