#include "seal/roaming.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;
using Kind = PathMessage::Kind;

constexpr Duration kHalfTrip = 10ms;

NetworkAddress address_at(std::uint8_t host, std::uint16_t port = 7000) {
  NetworkAddress address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, host};
  address.port = port;
  return address;
}

// One process with a peer. The peer answers challenges to the addresses in `homes_`, a round trip
// later.
class RoamingTest : public ::testing::Test {
 protected:
  void meet(std::vector<NetworkAddress> candidates) { roaming_.meet(now_, 0, candidates); }

  // Lets a datagram of the peer arrive from `source`.
  void hear(const NetworkAddress& source, bool newest = true, std::size_t bytes = 100) {
    roaming_.on_opened(now_, 0, source, bytes, newest);
  }

  void pump() {
    roaming_.on_wake(now_);
    while (const auto out = roaming_.poll()) {
      ++sent_[{out->to.ip[15], out->to.port}];
      bytes_[{out->to.ip[15], out->to.port}] += kPathMessageBytesMax + 32;
      if (out->message.kind == Kind::whereabouts) told_.push_back(*out);
      if (out->message.kind != Kind::challenge) continue;
      for (const NetworkAddress& home : homes_) {
        if (home == out->to) answers_.push_back({now_ + 2 * kHalfTrip, reply_from(home), *out});
      }
    }
    while (const auto move = roaming_.poll_move()) moves_.push_back(*move);
  }
  // Returns the address from which the peer answers a challenge to `home`.
  virtual NetworkAddress reply_from(const NetworkAddress& home) { return home; }

  void run(Duration time) {
    const Instant end = now_ + time;
    while (true) {
      pump();
      Instant next = std::min(end, roaming_.next_wake());
      for (const Answer& answer : answers_) next = std::min(next, answer.at);
      if (next >= end) break;
      now_ = std::max(now_, next);
      const auto answers = std::exchange(answers_, {});
      for (const Answer& answer : answers) {
        if (answer.at > now_) {
          answers_.push_back(answer);
          continue;
        }
        const PathMessage message{Kind::answer, answer.to.message.token, address_at(99)};
        roaming_.on_opened(now_, answer.to.slot, answer.from, 60, true);
        roaming_.on_message(now_, answer.to.slot, answer.from, message);
      }
    }
    now_ = end;
  }
  int sent(const NetworkAddress& to) { return sent_[{to.ip[15], to.port}]; }

  struct Answer {
    Instant at;
    NetworkAddress from;
    Roaming::Outgoing to;
  };
  Instant now_{1'000'000'000};
  Roaming roaming_{7};
  std::vector<NetworkAddress> homes_;  // addresses at which the peer lives
  std::vector<Answer> answers_;
  std::vector<Roaming::Move> moves_;
  std::vector<Roaming::Outgoing> told_;
  std::map<std::pair<int, int>, int> sent_;
  std::map<std::pair<int, int>, std::size_t> bytes_;
};

TEST_F(RoamingTest, APeerThatAnswersWhereItIsStays) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(5s);
  EXPECT_TRUE(roaming_.settled(0));
  EXPECT_EQ(sent(address_at(1)), 2);  // the round trip is longer than the first pause
  EXPECT_TRUE(moves_.empty());
  EXPECT_EQ(roaming_.seen_at(), address_at(99));
}

TEST_F(RoamingTest, APeerThatMovedIsFollowedWithinFourRoundTrips) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(5s);
  homes_ = {address_at(2)};
  const Instant moved = now_;
  hear(address_at(2));
  run(80ms);
  ASSERT_EQ(moves_.size(), 1u);
  EXPECT_EQ(moves_[0].to, address_at(2));
  EXPECT_FALSE(moves_[0].same_host);
  EXPECT_EQ(roaming_.address_of(0), address_at(2));
  EXPECT_EQ(now_ - moved, 80ms);
}

TEST_F(RoamingTest, AnotherPortIsTheSameHost) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(1s);
  homes_ = {address_at(1, 8000)};
  hear(address_at(1, 8000));
  run(100ms);
  ASSERT_EQ(moves_.size(), 1u);
  EXPECT_TRUE(moves_[0].same_host);
}

TEST_F(RoamingTest, WhatIsOvertakenStartsNothing) {
  homes_ = {address_at(1), address_at(2)};
  meet({address_at(1)});
  run(1s);
  hear(address_at(2), /*newest=*/false);
  run(1s);
  EXPECT_EQ(sent(address_at(2)), 0);
  EXPECT_TRUE(moves_.empty());
}

// An attacker at address 66 copies each datagram, and the copies are faster. The attacker also
// forwards challenges to address 66, and their answers. Traffic must not move there.
TEST_F(RoamingTest, WhoeverCopiesDatagramsTakesNoTrafficAway) {
  homes_ = {address_at(1), address_at(66)};  // datagrams to 66 reach the peer, too
  meet({address_at(1)});
  run(1s);
  for (int i = 0; i < 1000; ++i) {
    hear(address_at(66));
    run(10ms);
  }
  EXPECT_TRUE(moves_.empty());
  EXPECT_EQ(roaming_.address_of(0), address_at(1));
  EXPECT_GE(roaming_.counters().refused, 5u);
  EXPECT_LE(roaming_.counters().refused, 12u);  // once a second
}

// Traffic moves to address 66, because challenges to the present address are lost. It must come
// back when that address answers again.
TEST_F(RoamingTest, TrafficGoesBackWhenTheFormerAddressAnswers) {
  homes_ = {address_at(1), address_at(66)};
  meet({address_at(1)});
  run(1s);
  homes_ = {address_at(66)};
  hear(address_at(66));
  run(100ms);
  ASSERT_EQ(roaming_.address_of(0), address_at(66));
  homes_ = {address_at(1), address_at(66)};
  run(200ms);
  EXPECT_EQ(roaming_.address_of(0), address_at(1));
  EXPECT_EQ(roaming_.counters().returns, 1u);
  for (int i = 0; i < 100; ++i) {
    hear(address_at(66));
    run(10ms);
  }
  EXPECT_EQ(roaming_.address_of(0), address_at(1));
}

TEST_F(RoamingTest, AnAddressThatDoesNotAnswerGetsThreeTimesWhatItSent) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(1s);
  homes_ = {};
  hear(address_at(2), true, 50);
  run(10s);
  EXPECT_LE((bytes_[{2, 7000}]), 150u);
  EXPECT_GE((bytes_[{2, 7000}]), 60u);
  EXPECT_TRUE(moves_.empty());
}

// Answers that this process sends to the address count towards the limit, too: three times the
// bytes that came from there.
TEST_F(RoamingTest, AnAddressThatOnlyAsksGetsThreeTimesWhatItSent) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(1s);
  homes_ = {};
  hear(address_at(2), true, 60);
  roaming_.on_message(now_, 0, address_at(2), {Kind::challenge, 5, address_at(99)});
  run(10s);
  EXPECT_EQ((bytes_[{2, 7000}]), 180u);
}

// An answer proves an address only if it comes from that address. Otherwise a process that sees a
// challenge elsewhere could prove another process's address.
class ElsewhereTest : public RoamingTest {
  NetworkAddress reply_from(const NetworkAddress& home) override {
    return home == address_at(2) ? address_at(3) : home;
  }
};

TEST_F(ElsewhereTest, AnAnswerFromElsewhereProvesNothing) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(1s);
  homes_ = {address_at(2)};
  hear(address_at(2));
  run(5s);
  EXPECT_EQ(roaming_.address_of(0), address_at(1));
}

TEST_F(RoamingTest, OfCandidatesTheOneThatAnswersIsTaken) {
  homes_ = {address_at(3)};
  meet({address_at(1), address_at(2), address_at(3)});
  run(25ms);
  EXPECT_EQ(roaming_.address_of(0), address_at(3));
  EXPECT_TRUE(roaming_.settled(0));
  run(10s);
  EXPECT_LE(sent(address_at(1)), 8);
  EXPECT_LE(sent(address_at(2)), 8);
}

// An attacker at address 66 copies from the start, so the attacker's answers are the first.
TEST_F(RoamingTest, WhoeverCopiesFromTheStartTakesNoTrafficAway) {
  homes_ = {address_at(66)};
  meet({address_at(1), address_at(2)});
  hear(address_at(66));
  run(15ms);
  homes_ = {address_at(2), address_at(66)};
  run(1s);
  EXPECT_EQ(roaming_.address_of(0), address_at(2));
  EXPECT_EQ(moves_.size(), 1u);
}

TEST_F(RoamingTest, WhereNoCandidateAnswersTheAddressThatWasSeenIsTaken) {
  homes_ = {address_at(66)};
  meet({address_at(1)});
  hear(address_at(66));
  run(1s);
  EXPECT_EQ(roaming_.address_of(0), address_at(66));
}

TEST_F(RoamingTest, FloodsOfNewAddressesAreTriedATimeApart) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(1s);
  homes_ = {};
  const auto before = roaming_.counters().challenges;
  for (int i = 0; i < 1000; ++i) {
    hear(address_at(static_cast<std::uint8_t>(2 + i % 200), static_cast<std::uint16_t>(1000 + i)),
         true, 1440);
    run(1ms);
  }
  EXPECT_LE(roaming_.counters().challenges - before, 150u);
}

TEST_F(RoamingTest, OthersAreToldWhereAPeerWasFound) {
  homes_ = {address_at(1)};
  const NetworkAddress others[] = {address_at(10), address_at(11)};
  roaming_.meet(now_, 0, std::array{address_at(1)}, 0xAA);
  roaming_.meet(now_, 1, {&others[0], 1}, 0xBB);
  roaming_.meet(now_, 2, {&others[1], 1}, 0xCC);
  run(1s);
  EXPECT_TRUE(told_.empty());
  homes_ = {address_at(2)};
  hear(address_at(2));
  run(2s);
  ASSERT_EQ(told_.size(), 6u);  // three times two
  for (const auto& told : told_) {
    EXPECT_EQ(told.message, (PathMessage{Kind::whereabouts, 0xAA, address_at(2)}));
    EXPECT_TRUE(told.slot == 1 || told.slot == 2);
  }
}

// While process 1's own address was unknown, it could not be told that process 0 has moved. So it
// must be told later.
TEST_F(RoamingTest, OfTwoThatMoveTheSecondIsToldOfTheFirst) {
  homes_ = {address_at(1), address_at(10)};
  roaming_.meet(now_, 0, std::array{address_at(1)}, 0xAA);
  roaming_.meet(now_, 1, std::array{address_at(10)}, 0xBB);
  run(1s);
  homes_ = {address_at(2)};  // both are gone, and the first is heard again
  hear(address_at(2));
  run(2s);
  ASSERT_EQ(roaming_.address_of(0), address_at(2));
  told_.clear();
  homes_ = {address_at(2), address_at(20)};
  roaming_.on_opened(now_, 1, address_at(20), 100, true);
  run(2s);
  ASSERT_EQ(roaming_.address_of(1), address_at(20));
  int of_the_first = 0;
  for (const auto& told : told_) {
    if (told.message != PathMessage{Kind::whereabouts, 0xAA, address_at(2)}) continue;
    EXPECT_EQ(told.slot, 1u);
    EXPECT_EQ(told.to, address_at(20));
    ++of_the_first;
  }
  EXPECT_EQ(of_the_first, 3);
  EXPECT_EQ(told_.size(), 6u);
}

// The peer's address translator lets in only answers, so this process must send first.
TEST_F(RoamingTest, AnAddressThatAnotherPeerToldIsTriedAndMustAnswer) {
  homes_ = {address_at(2)};
  roaming_.meet(now_, 0, std::array{address_at(1)}, 0xAA);
  run(400ms);
  roaming_.on_message(now_, 0, address_at(1), {Kind::whereabouts, 0xAA, address_at(3)});
  roaming_.on_message(now_, 0, address_at(1), {Kind::whereabouts, 0xDD, address_at(4)});
  run(4s);
  EXPECT_EQ(roaming_.address_of(0), address_at(1));
  EXPECT_EQ(sent(address_at(3)), 8);
  EXPECT_EQ(sent(address_at(4)), 0);
  roaming_.on_message(now_, 0, address_at(1), {Kind::whereabouts, 0xAA, address_at(2)});
  run(50ms);
  EXPECT_EQ(roaming_.address_of(0), address_at(2));
}

TEST_F(RoamingTest, OneSecondOfSilenceIsBrokenWhileOperationsAreOpen) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(1s);
  const int before = sent(address_at(1));
  roaming_.set_busy(now_, true);
  for (int i = 0; i < 5; ++i) {
    hear(address_at(1));  // the peer is not silent
    run(1s);
  }
  EXPECT_GE(sent(address_at(1)) - before, 4);
  EXPECT_LE(sent(address_at(1)) - before, 6);
  roaming_.set_busy(now_, false);
  run(10s);
  EXPECT_LE(sent(address_at(1)) - before, 7);
}

// A silent peer may just have no open call. So its address must be asked, and kept if it answers.
TEST_F(RoamingTest, APeerThatOnlyAnswersIsAskedAndStays) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(1s);
  const auto before = roaming_.counters().challenges;
  roaming_.set_busy(now_, true);
  run(60s);
  EXPECT_TRUE(roaming_.settled(0));
  EXPECT_EQ(roaming_.counters().silent, 0u);
  EXPECT_LE(roaming_.counters().challenges - before, 2 * 60 / 1.25);
}

TEST_F(RoamingTest, SilenceIsBrokenEveryFifteenSeconds) {
  homes_ = {address_at(1)};
  meet({address_at(1)});
  run(1s);
  const int before = sent(address_at(1));
  run(60s);
  EXPECT_EQ(sent(address_at(1)) - before, 4);
  for (int i = 0; i < 60; ++i) {
    roaming_.on_sent(now_, 0);
    run(1s);
  }
  EXPECT_LE(sent(address_at(1)) - before, 5);
}

}  // namespace
}  // namespace leeway::seal
