#include "transport/mixed/mixed_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>

#include "support/train_datagrams.h"
#include "unit/transport/datagrams.h"
#include "unit/transport/shared_pair.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// A network that keeps each rank's datagrams until they are received.
struct Net {
  struct Item {
    Rank from;
    Bytes bytes;
  };
  std::vector<std::deque<Item>> to;
  bool loses = false;  // everything
};

class NetTransport final : public DatagramTransport {
 public:
  NetTransport(Net& net, Rank self) : net_(net), self_(self) {}

  std::string_view name() const override { return "net"; }
  const TransportLimits& limits() const override { return limits_; }
  std::size_t send(std::span<const Train> trains) override {
    const std::size_t count = std::min(room, trains.size());
    for (const Train& train : trains.first(count)) {
      if (net_.loses) continue;
      support::for_each_datagram(train, [&](ByteSpan datagram) {
        net_.to[train.to].push_back({self_, Bytes(datagram.begin(), datagram.end())});
      });
      ++sent;
    }
    return count;
  }
  std::size_t receive(std::span<Received> out) override {
    ++looks;
    here_.clear();
    auto& mine = net_.to[self_];
    while (here_.size() < out.size() && !mine.empty()) {
      here_.push_back(std::move(mine.front()));
      mine.pop_front();
    }
    for (std::size_t i = 0; i < here_.size(); ++i) out[i] = {here_[i].from, here_[i].bytes};
    return here_.size();
  }
  void wait(Duration timeout) override {
    waits.push_back(timeout);
    if (during_wait) std::exchange(during_wait, nullptr)();
  }
  void wake() override {}
  TransportCounters counters() const override { return {.datagrams_sent = sent}; }

  std::size_t room = SIZE_MAX;
  std::uint64_t sent = 0;
  int looks = 0;
  std::vector<Duration> waits;
  std::function<void()> during_wait;  // once

 private:
  Net& net_;
  const Rank self_;
  TransportLimits limits_{1472, 65507, 64, 256, 1u << 20};
  std::vector<Net::Item> here_;
};

// Two ranks of one host, with a hand clock.
class MixedTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    net_.to.resize(3);
    for (Rank rank = 0; rank < 2; ++rank) open(rank, kSharedMemoryFolder);
  }
  ~MixedTransportTest() override { MemoryFile::remove_name(kSharedMemoryFolder, name_); }

  void open(Rank rank, const std::string& folder) {
    auto wide = std::make_unique<NetTransport>(net_, rank);
    wide_[rank] = wide.get();
    const auto clock = [this] { return now_; };
    auto shm = ShmTransport::open(clock, 1472).value();
    all_[rank] = std::make_unique<MixedTransport>(std::move(wide), std::move(shm), clock, folder);
  }
  void meet(Rank rank) {
    all_[rank]->meet(static_cast<Rank>(1 - rank), {name_, rank == 0, kRingBytesMin}, 100u + rank);
  }
  // Lets both ranks receive again and again.
  std::vector<Bytes> turn(int times = 10) {
    std::vector<Bytes> arrived;
    for (int i = 0; i < times; ++i) {
      now_ += 1ms;
      for (Rank rank = 0; rank < 2; ++rank) {
        for (Bytes& bytes : take(rank)) arrived.push_back(std::move(bytes));
      }
    }
    return arrived;
  }
  std::vector<Bytes> take(Rank rank) {
    std::vector<Received> out(64);
    std::vector<Bytes> arrived;
    for (const Received& datagram : std::span(out).first(all_[rank]->receive(out)))
      arrived.push_back(bytes_of(datagram.bytes));
    return arrived;
  }
  void prove() {
    meet(0);
    meet(1);
    turn();
    ASSERT_TRUE(all_[0]->is_near(1) && all_[1]->is_near(0)) << all_[0]->obstacle(1);
  }
  std::uint64_t counter(Rank rank, const std::string& name) {
    for (const auto& [key, value] : all_[rank]->named_counters()) {
      if (key == name) return value;
    }
    ADD_FAILURE() << name;
    return 0;
  }
  bool is_named() const {
    return std::filesystem::exists(std::string(kSharedMemoryFolder) + "/" + name_);
  }

  const std::string name_ = fresh_name();
  Instant now_{1'000'000'000};
  Net net_;
  NetTransport* wide_[2];
  std::unique_ptr<MixedTransport> all_[2];
};

TEST_F(MixedTransportTest, APairThatProvesItsRingsUsesThem) {
  prove();
  const std::uint64_t wide_before = wide_[0]->sent;
  const OwnedTrain train(1, 1000, pattern(2500));
  EXPECT_EQ(send_one(*all_[0], train.train), 1u);
  EXPECT_EQ(wide_[0]->sent, wide_before);
  EXPECT_EQ(take(1).size(), 3u);
  EXPECT_TRUE(all_[0]->limits_to(1).intact);
  EXPECT_FALSE(all_[0]->limits().intact) << "another peer may be elsewhere";
  EXPECT_FALSE(is_named()) << "nothing is left when both are killed now";
}

TEST_F(MixedTransportTest, DatagramsGoTheWideWayUntilThen) {
  meet(0);
  const OwnedTrain train(1, 1000, pattern(1000));
  EXPECT_EQ(send_one(*all_[0], train.train), 1u);
  EXPECT_FALSE(all_[0]->is_near(1));
  EXPECT_EQ(take(1).at(0), train.memory) << "the peer has not met this one yet";
  EXPECT_FALSE(all_[0]->limits_to(1).intact);
}

TEST_F(MixedTransportTest, TheOrderInWhichRanksMeetDoesNotMatter) {
  meet(1);
  turn(3);
  EXPECT_FALSE(all_[1]->is_near(0));
  meet(0);
  turn();
  EXPECT_TRUE(all_[0]->is_near(1) && all_[1]->is_near(0));
  EXPECT_TRUE(all_[0]->settled() && all_[1]->settled());
}

TEST_F(MixedTransportTest, MemoryWithoutUdpThatWakesIsNotUsed) {
  net_.loses = true;
  meet(0);
  meet(1);
  for (int i = 0; i < 60; ++i) {
    now_ += 200ms;
    turn(1);
  }
  EXPECT_FALSE(all_[0]->is_near(1) || all_[1]->is_near(0));
  EXPECT_TRUE(all_[0]->settled() && all_[1]->settled());
  EXPECT_FALSE(is_named());
}

TEST_F(MixedTransportTest, BellsThatAreLostDelayTheProofOnly) {
  net_.loses = true;
  meet(0);
  meet(1);
  turn(20);
  EXPECT_FALSE(all_[0]->is_near(1));
  net_.loses = false;
  turn(300);
  EXPECT_TRUE(all_[0]->is_near(1) && all_[1]->is_near(0));
}

// The peer does not find the name of the segment, as with two mounts of /dev/shm.
TEST_F(MixedTransportTest, APeerThatFindsNoSegmentSaysSoAndBothUseUdpSoon) {
  open(1, "/dev/shm/there-is-no-such-folder");
  meet(0);
  meet(1);
  turn();
  for (Rank rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(all_[rank]->settled());
    EXPECT_FALSE(all_[rank]->is_near(1 - rank));
    EXPECT_THAT(all_[rank]->obstacle(1 - rank), Not(HasSubstr("another host"))) << rank;
    EXPECT_FALSE(all_[rank]->obstacle(1 - rank).empty());
  }
  const OwnedTrain train(1, 1000, pattern(1000));
  send_one(*all_[0], train.train);
  EXPECT_EQ(take(1).size(), 1u);
}

TEST_F(MixedTransportTest, ACreatorWithoutMemorySaysSoAndBothUseUdpSoon) {
  open(0, "/dev/shm/there-is-no-such-folder");
  meet(0);
  meet(1);
  turn();
  EXPECT_TRUE(all_[0]->settled() && all_[1]->settled());
  EXPECT_THAT(all_[0]->obstacle(1), HasSubstr("there-is-no-such-folder"));
  EXPECT_THAT(all_[1]->obstacle(0), HasSubstr("cannot share"));
}

TEST_F(MixedTransportTest, ASegmentThatIsNotThePeersIsNotUsed) {
  meet(1);
  { auto squatter = Segment::create(kSharedMemoryFolder, name_, kRingBytesMin); }
  turn(4);
  meet(0);  // the peer has taken the squatter's segment, and its name
  turn(20);
  EXPECT_FALSE(all_[0]->is_near(1));
  EXPECT_FALSE(all_[1]->is_near(0)) << "nobody rings who wrote into that segment";
}

TEST_F(MixedTransportTest, ASleeperIsWokenByABellOverTheWideWay) {
  prove();
  const OwnedTrain train(1, 100, pattern(100));
  std::uint64_t before = wide_[0]->sent;
  send_one(*all_[0], train.train);
  EXPECT_EQ(wide_[0]->sent, before) << "it is awake";
  EXPECT_EQ(take(1).size(), 1u);
  take(1);
  bool slept = false;
  wide_[1]->during_wait = [&] {
    slept = true;
    before = wide_[0]->sent;
    send_one(*all_[0], train.train);
    EXPECT_EQ(wide_[0]->sent, before + 1) << "a bell";
    EXPECT_EQ(net_.to[1].size(), 1u) << "which wakes whoever waits for the socket";
  };
  all_[1]->wait(1s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(take(1), std::vector<Bytes>{train.memory}) << "and no more than the datagram is seen";
}

TEST_F(MixedTransportTest, ARankThatWaitsForRoomIsWokenWhenTheReaderGivesBack) {
  prove();
  const OwnedTrain train(1, 1000, pattern(64'000));
  while (send_one(*all_[0], train.train) == 1) {
  }
  bool slept = false;
  wide_[0]->during_wait = [&] {
    slept = true;
    take(1);
    EXPECT_TRUE(net_.to[0].empty());
    take(1);
    EXPECT_EQ(net_.to[0].size(), 1u);
  };
  all_[0]->wait(1s);
  EXPECT_TRUE(slept);
  EXPECT_EQ(send_one(*all_[0], train.train), 1u);
}

TEST_F(MixedTransportTest, NoSleepBeginsInFrontOfADatagramInARing) {
  prove();
  take(1);
  send_one(*all_[0], OwnedTrain(1, 100, pattern(100)).train);
  const std::size_t waits = wide_[1]->waits.size();
  all_[1]->wait(1s);
  EXPECT_EQ(wide_[1]->waits.size(), waits);
}

TEST_F(MixedTransportTest, WhileAProofGoesOnSleepsAreShort) {
  meet(0);
  take(0);
  all_[0]->wait(1h);
  ASSERT_EQ(wide_[0]->waits.size(), 1u);
  EXPECT_LE(wide_[0]->waits[0], Duration(RingProof::kEveryMax));
}

TEST_F(MixedTransportTest, BellsThatFoundNoRoomAreRungLater) {
  wide_[0]->room = 0;
  meet(0);
  meet(1);
  turn();
  EXPECT_FALSE(all_[0]->is_near(1)) << "the peer was not woken";
  wide_[0]->room = SIZE_MAX;
  turn();
  EXPECT_TRUE(all_[0]->is_near(1));
}

TEST_F(MixedTransportTest, DatagramsThatLookLikeBellsGoNoFurther) {
  all_[0]->meet(1);
  for (const std::uint32_t kind : {0u, 1u, 2u, 3u}) {
    Bytes bytes(Bell::kBytes);
    std::memcpy(bytes.data(), &Bell::kMagic, 4);
    std::memcpy(bytes.data() + 4, &kind, 4);
    net_.to[0].push_back({1, bytes});
    EXPECT_EQ(take(0).size(), kind == 1 || kind == 2 ? 0u : 1u) << kind;
  }
  EXPECT_EQ(counter(0, "shm_bells_heard"), 2u);
}

TEST_F(MixedTransportTest, ABellOfAnUnknownPeerDoesNothing) {
  const auto bell = Bell{Bell::Kind::ring, 5}.encode();
  net_.to[0].push_back({2, Bytes(bell.begin(), bell.end())});
  EXPECT_TRUE(take(0).empty());
  EXPECT_TRUE(net_.to[2].empty()) << "and is not answered";
}

TEST_F(MixedTransportTest, APeerThatBreaksItsRingIsReachedTheWideWay) {
  meet(0);
  const Segment spy = Segment::open(kSharedMemoryFolder, name_).value();
  meet(1);
  turn();
  ASSERT_TRUE(all_[0]->is_near(1));
  spy.ring(1).head->written.store(1);
  take(0);
  EXPECT_FALSE(all_[0]->is_near(1));
  EXPECT_EQ(counter(0, "shm_broken"), 1u);
  const std::uint64_t before = wide_[0]->sent;
  send_one(*all_[0], OwnedTrain(1, 100, pattern(100)).train);
  EXPECT_EQ(wide_[0]->sent, before + 1);
  EXPECT_FALSE(turn(70).empty()) << "who has not noticed looks there, too";
}

TEST_F(MixedTransportTest, WhereAllAreNearTheWideWayIsSeldomLookedAt) {
  prove();
  const int before = wide_[0]->looks;
  for (int i = 0; i < 640; ++i) take(0);
  EXPECT_LE(wide_[0]->looks - before, 11);
  all_[0]->wait(1ms);
  const int after_sleep = wide_[0]->looks;
  take(0);
  EXPECT_EQ(wide_[0]->looks, after_sleep + 1) << "whatever woke it";
}

TEST_F(MixedTransportTest, BothWaysAreServedInOneCallToSend) {
  prove();
  all_[0]->meet(2);
  const OwnedTrain near(1, 100, pattern(100, 1));
  const OwnedTrain far(2, 100, pattern(100, 2));
  const std::vector<Train> trains = {near.train, far.train, far.train, near.train};
  EXPECT_EQ(all_[0]->send(trains), 4u);
  EXPECT_EQ(net_.to[2].size(), 2u);
  EXPECT_EQ(take(1).size(), 2u);
}

TEST_F(MixedTransportTest, WhatTheWideWayHasNoRoomForEndsTheCall) {
  prove();
  all_[0]->meet(2);
  const OwnedTrain near(1, 100, pattern(100, 1));
  const OwnedTrain far(2, 100, pattern(100, 2));
  wide_[0]->room = 0;
  const std::vector<Train> trains = {near.train, far.train, near.train};
  EXPECT_EQ(all_[0]->send(trains), 1u);
}

}  // namespace
}  // namespace leeway::transport
