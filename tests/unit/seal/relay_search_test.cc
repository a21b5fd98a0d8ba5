// Tests which process relays, in a network without loss where some processes have no path to each
// other.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "seal/roaming.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

constexpr Duration kOneWay = 10ms;

NetworkAddress place_of(Rank process) {
  NetworkAddress address;
  address.ip = {0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                0xFF,
                0xFF,
                192,
                0,
                static_cast<std::uint8_t>(2 + process / 200),
                static_cast<std::uint8_t>(1 + process % 200)};
  address.port = 7000;
  return address;
}

class RelaysTest : public ::testing::Test {
 protected:
  void meet(Rank processes) {
    for (Rank self = 0; self < processes; ++self) {
      all_.push_back(std::make_unique<Roaming>(self));
      for (Rank peer = 0; peer < processes; ++peer) {
        const NetworkAddress address = place_of(peer);
        if (peer != self) all_[self]->meet(now_, peer, {&address, 1}, peer + 1u);
      }
      moves_.emplace_back();
    }
  }
  void cut(Rank one, Rank other) { cut_.insert({one, other}), cut_.insert({other, one}); }
  void mend(Rank one, Rank other) { cut_.erase({one, other}), cut_.erase({other, one}); }
  void cut_off(Rank one) {
    for (Rank other = 0; other < all_.size(); ++other) cut(one, other);
  }
  void set_busy(bool busy) {
    for (auto& one : all_) one->set_busy(now_, busy);
  }
  Roaming& of(Rank process) { return *all_[process]; }
  void hear(Rank self, Rank peer) { all_[self]->on_heard(now_, peer); }
  Rank via(Rank self, Rank peer) { return all_[self]->via(peer); }
  // Returns the latest change of the way to `peer` that `self` was told.
  const Roaming::Move& move_of(Rank self, Rank peer) { return moves_[self].at(peer); }

  void run(Duration time) {
    const Instant end = now_ + time;
    while (true) {
      for (Rank self = 0; self < all_.size(); ++self) pump(self);
      Instant next = end;
      for (const auto& one : all_) next = std::min(next, one->next_wake());
      if (!flying_.empty()) next = std::min(next, Instant{flying_.begin()->first});
      if (next >= end) break;
      now_ = std::max(now_, next);
      while (!flying_.empty() && flying_.begin()->first <= now_.ns) {
        const Flying flying = flying_.begin()->second;
        flying_.erase(flying_.begin());
        arrive(flying);
      }
    }
    now_ = end;
  }

  int challenges_through_[16] = {};

 private:
  struct Flying {
    Rank from;  // sender of the message
    Rank to;    // receiver of the message
    Rank via;   // relay
    Rank sender;
    Rank receiver;
    PathMessage message;
  };

  void pump(Rank self) {
    all_[self]->on_wake(now_);
    while (const auto out = all_[self]->poll()) {
      const Rank hop = out->via == kNoRank ? out->slot : out->via;
      if (out->via < 16) ++challenges_through_[out->via];
      send({self, out->slot, out->via, self, hop, out->message});
    }
    while (const auto move = all_[self]->poll_move()) moves_[self][move->slot] = *move;
  }
  void send(const Flying& flying) {
    if (!cut_.contains({flying.sender, flying.receiver}))
      flying_.emplace((now_ + kOneWay).ns, flying);
  }
  void arrive(const Flying& flying) {
    Roaming& here = *all_[flying.receiver];
    here.on_opened(now_, flying.sender, place_of(flying.sender), 60, true);
    if (flying.via == kNoRank)
      return here.on_message(now_, flying.from, place_of(flying.from), flying.message);
    if (flying.receiver == flying.to)
      return here.on_relayed_message(now_, flying.from, flying.via, flying.message);
    if (here.settled(flying.to))  // Forwarding::forward()
      send({flying.from, flying.to, flying.via, flying.receiver, flying.to, flying.message});
  }

  Instant now_{1'000'000'000};
  std::vector<std::unique_ptr<Roaming>> all_;
  std::vector<std::map<Rank, Roaming::Move>> moves_;
  std::set<std::pair<Rank, Rank>> cut_;
  std::multimap<std::int64_t, Flying> flying_;
};

TEST_F(RelaysTest, WhoHasAPathNeedsNobody) {
  meet(4);
  run(10s);
  for (Rank self = 0; self < 4; ++self) {
    for (Rank peer = 0; peer < 4; ++peer) {
      if (peer == self) continue;
      EXPECT_EQ(via(self, peer), kNoRank);
    }
  }
  EXPECT_EQ(of(0).counters().relays, 0u);
}

TEST_F(RelaysTest, TwoWithoutAPathMeetThroughAThirdAfterASecond) {
  meet(3);
  cut(1, 2);
  run(990ms);
  EXPECT_EQ(via(1, 2), kNoRank);
  run(100ms);
  EXPECT_EQ(via(1, 2), 0u);
  EXPECT_EQ(via(2, 1), 0u);
  EXPECT_EQ(move_of(1, 2).via, 0u);
  EXPECT_FALSE(move_of(1, 2).same_host);
  EXPECT_FALSE(of(1).settled(2));
  EXPECT_EQ(via(0, 1), kNoRank);
}

// The peer comes up late, when its address is asked only rarely. As soon as the peer is heard, it
// must be asked at once.
TEST_F(RelaysTest, APeerThatComesUpLateIsAskedAsSoonAsItIsHeard) {
  meet(3);
  cut(0, 1);
  run(700ms);
  mend(0, 1);
  run(10ms);
  hear(0, 1);
  hear(1, 0);
  run(3 * kOneWay);
  EXPECT_TRUE(of(0).settled(1));
  EXPECT_TRUE(of(1).settled(0));
  run(2s);
  EXPECT_EQ(of(0).counters().relays + of(1).counters().relays, 0u);
}

// The peer is heard all the time, but its answers never come. It must be asked twenty times a
// second, and not for each datagram.
TEST_F(RelaysTest, APeerThatIsHeardAndDoesNotAnswerIsAskedTwentyTimesASecond) {
  meet(2);
  cut(0, 1);
  run(5s);
  const std::uint64_t before = of(0).counters().challenges;
  for (int i = 0; i < 1000; ++i) {
    hear(0, 1);
    run(1ms);
  }
  const std::uint64_t asked = of(0).counters().challenges - before;
  EXPECT_GE(asked, 19u);
  EXPECT_LE(asked, 21u);
}

TEST_F(RelaysTest, OnlyWhoReachesBothRelays) {
  meet(4);
  cut(2, 3);
  cut(0, 3);  // so 0 cannot help 2
  run(1500ms);
  EXPECT_EQ(via(2, 3), 1u);
  EXPECT_EQ(via(3, 2), 1u);
  EXPECT_EQ(via(0, 3), 1u);
}

// A process asks eight possible relays at a time. Here only process 10 reaches process 11, so it
// must be found after the first eight.
TEST_F(RelaysTest, OneOfManyIsFound) {
  meet(12);
  for (Rank other = 0; other < 10; ++other) cut(11, other);
  run(1800ms);
  for (Rank self = 0; self < 10; ++self) {
    EXPECT_EQ(via(self, 11), 10u);
    EXPECT_EQ(via(11, self), 10u);
  }
}

TEST_F(RelaysTest, WhereNobodyHelpsAskingBecomesRare) {
  meet(4);
  cut_off(3);
  run(120s);
  const int before = challenges_through_[0];
  run(60s);
  EXPECT_LE(challenges_through_[0] - before, 3 * 3);
  EXPECT_EQ(via(0, 3), kNoRank);
}

TEST_F(RelaysTest, AnotherTakesOverFromARelayThatDied) {
  meet(4);
  cut(2, 3);
  set_busy(true);
  run(1500ms);
  ASSERT_EQ(via(2, 3), 0u);
  cut_off(0);
  run(2s);  // before the peer time-out of 3 s
  EXPECT_EQ(via(2, 3), 1u);
  EXPECT_EQ(via(3, 2), 1u);
  EXPECT_EQ(move_of(2, 3).via, 1u);
}

TEST_F(RelaysTest, ARelayThatLivesIsKept) {
  meet(4);
  cut(2, 3);
  set_busy(true);
  run(60s);
  EXPECT_EQ(of(2).counters().relays, 1u);
}

TEST_F(RelaysTest, TrafficGoesStraightWhenTheAddressAnswers) {
  meet(3);
  cut(1, 2);
  run(2s);
  ASSERT_EQ(via(1, 2), 0u);
  run(60s);  // by now it is asked every 30 s
  mend(1, 2);
  run(31s);
  EXPECT_EQ(via(1, 2), kNoRank);
  EXPECT_EQ(via(2, 1), kNoRank);
  EXPECT_EQ(move_of(1, 2).via, kNoRank);
  EXPECT_EQ(move_of(1, 2).to, place_of(2));
  EXPECT_FALSE(move_of(1, 2).same_host);  // the path is another one
}

TEST_F(RelaysTest, APathThatFallsSilentUnderLoadIsReplacedWithinTwoSeconds) {
  meet(3);
  set_busy(true);
  run(5s);
  cut(1, 2);
  run(2s);
  EXPECT_EQ(via(1, 2), 0u);
  EXPECT_EQ(via(2, 1), 0u);
  EXPECT_EQ(of(1).counters().silent, 1u);
  mend(1, 2);
  run(31s);
  EXPECT_EQ(via(1, 2), kNoRank);
}

// Without an open call, no process asks whether a path still works. Only the mappings of address
// translators are kept alive.
TEST_F(RelaysTest, APathThatFallsSilentWithoutLoadIsLeftAlone) {
  meet(3);
  run(5s);
  cut(1, 2);
  run(10s);
  EXPECT_EQ(of(1).counters().silent, 0u);
}

// To a process that stood still, all its peers seem silent. It must not give up its paths for that.
TEST_F(RelaysTest, AProcessThatStoodStillFindsItsPathsWhereTheyWere) {
  meet(3);
  set_busy(true);
  run(5s);
  cut(1, 0);
  cut(1, 2);
  run(10s);
  mend(1, 0);
  mend(1, 2);
  run(31s);
  for (const Rank peer : {0, 2}) {
    EXPECT_TRUE(of(1).settled(peer));
    EXPECT_EQ(via(1, peer), kNoRank);
  }
}

TEST_F(RelaysTest, AMessageThatWasRelayedSaysNothingOfTheAddress) {
  meet(3);
  run(1s);
  of(1).on_relayed_message(Instant{2'000'000'000}, 2, 0,
                           {PathMessage::Kind::challenge, 5, place_of(9)});
  run(5s);
  EXPECT_EQ(of(1).address_of(2), place_of(2));
  EXPECT_FALSE(of(1).seen_at() == place_of(9));
}

// These answers have tokens that no challenge had, and claim to come through a relay. They must not
// make it a relay.
TEST_F(RelaysTest, AnAnswerToNoQuestionChangesNothing) {
  meet(3);
  cut(1, 2);
  run(900ms);
  for (std::uint64_t token = 0; token < 1000; ++token) {
    of(1).on_relayed_message(Instant{1'900'000'000}, 2, 0,
                             {PathMessage::Kind::answer, token << 8, place_of(2)});
  }
  EXPECT_EQ(via(1, 2), kNoRank);
}

}  // namespace
}  // namespace leeway::seal
