#include "transport/shm/shm_transport.h"

#include <gtest/gtest.h>

#include "unit/transport/datagrams.h"
#include "unit/transport/shared_pair.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kDatagramMax = 9000;

// Ranks that all share memory with one another, with a hand clock.
class ShmTransportTest : public testing::Test {
 protected:
  void make(Rank ranks) {
    for (Rank i = 0; i < ranks; ++i)
      all_.push_back(ShmTransport::open([this] { return now_; }, kDatagramMax).value());
    for (Rank i = 0; i < ranks; ++i) {
      for (Rank j = i + 1; j < ranks; ++j) {
        SharedPair pair;
        memory_.push_back(pair.creator.ring(0));
        all_[i]->attach(j, std::move(pair.creator), /*creator=*/true);
        all_[j]->attach(i, std::move(pair.opener), /*creator=*/false);
      }
    }
  }
  std::vector<Bytes> take(Rank at, std::size_t room = 64) {
    std::vector<Received> out(room);
    std::vector<Bytes> all;
    const std::size_t count = all_[at]->receive(out);
    for (std::size_t i = 0; i < count; ++i) all.push_back(bytes_of(out[i].bytes));
    return all;
  }
  // Sends until a ring is full. Returns how many trains the ring took.
  int fill(Rank from, Rank to) {
    const OwnedTrain train(to, 8000, pattern(64'000));
    int taken = 0;
    while (send_one(*all_[from], train.train) == 1) ++taken;
    return taken;
  }

  Instant now_{1'000'000'000};
  std::vector<std::unique_ptr<ShmTransport>> all_;
  std::vector<RingMemory> memory_;  // memory that the lower rank of a pair writes, pair by pair
};

TEST_F(ShmTransportTest, DatagramsOfAllPeersArriveAndSayWhoseTheyAre) {
  make(3);
  const OwnedTrain one(2, 1000, pattern(2500, 1));
  const OwnedTrain other(2, 2000, pattern(2000, 2));
  EXPECT_EQ(send_one(*all_[0], one.train), 1u);
  EXPECT_EQ(send_one(*all_[1], other.train), 1u);
  std::vector<Received> out(8);
  ASSERT_EQ(all_[2]->receive(out), 4u);
  int of_zero = 0;
  for (const Received& datagram : std::span(out).first(4)) {
    of_zero += datagram.from == 0;
    if (datagram.from == 0) continue;
    EXPECT_EQ(bytes_of(datagram.bytes), other.memory);
  }
  EXPECT_EQ(of_zero, 3);
  EXPECT_EQ(all_[2]->counters().datagrams_received, 4u);
  EXPECT_EQ(all_[0]->counters().bytes_sent, 2500u);
}

TEST_F(ShmTransportTest, AFullRingMakesSendFallShortAndNothingIsLost) {
  make(2);
  const int taken = fill(0, 1);
  EXPECT_EQ(taken, 2);
  EXPECT_EQ(all_[0]->counters().send_errors, 0u);
  EXPECT_EQ(take(1).size(), 16u);
  EXPECT_TRUE(take(1).empty());
  EXPECT_EQ(fill(0, 1), 2) << "the next receive() gives back what was lent";
}

TEST_F(ShmTransportTest, NoPeerIsStarvedByOneThatFillsEveryCall) {
  make(3);
  fill(0, 2);
  fill(1, 2);
  std::vector<int> from(2);
  std::vector<Received> out(8);
  for (int i = 0; i < 2; ++i) {
    for (const Received& datagram : std::span(out).first(all_[2]->receive(out)))
      ++from[datagram.from];
  }
  EXPECT_EQ(from, (std::vector<int>{8, 8}));
}

TEST_F(ShmTransportTest, AReaderThatDoesNotMoveLosesWhatIsSentToIt) {
  make(3);
  fill(0, 1);
  now_ += ShmTransport::kStall - 1ms;
  const OwnedTrain train(1, 8000, pattern(64'000));
  EXPECT_EQ(send_one(*all_[0], train.train), 0u) << "it may be a busy machine";
  now_ += 1ms;
  EXPECT_EQ(send_one(*all_[0], train.train), 1u) << "taken and lost: others must not wait";
  EXPECT_EQ(all_[0]->shm_counters().stalled, 1u);
  const OwnedTrain other(2, 8000, pattern(64'000));
  EXPECT_EQ(send_one(*all_[0], other.train), 1u);
  EXPECT_EQ(take(2).size(), 8u);
  take(1);
  take(1);
  EXPECT_EQ(fill(0, 1), 2) << "it lives after all";
  EXPECT_EQ(all_[0]->counters().send_errors, 1u);
}

TEST_F(ShmTransportTest, ASleeperIsRungOnceASleep) {
  make(2);
  const OwnedTrain train(1, 100, pattern(100));
  send_one(*all_[0], train.train);
  EXPECT_EQ(all_[0]->poll_bell(), std::nullopt) << "it is awake";
  take(1);
  EXPECT_TRUE(all_[1]->begin_sleep());
  send_one(*all_[0], train.train);
  send_one(*all_[0], train.train);
  EXPECT_EQ(all_[0]->poll_bell(), Rank{1});
  EXPECT_EQ(all_[0]->poll_bell(), std::nullopt);
  all_[1]->end_sleep();
  take(1);
  EXPECT_TRUE(all_[1]->begin_sleep());
  send_one(*all_[0], train.train);
  EXPECT_EQ(all_[0]->poll_bell(), Rank{1}) << "another sleep";
}

TEST_F(ShmTransportTest, ABellThatIsNotHeededIsRungAgain) {
  make(2);
  EXPECT_TRUE(all_[1]->begin_sleep());
  send_one(*all_[0], OwnedTrain(1, 100, pattern(100)).train);
  EXPECT_EQ(all_[0]->poll_bell(), Rank{1});
  EXPECT_EQ(all_[0]->next_wake(), now_ + ShmTransport::kBellEvery);
  int rung = 0;
  for (int i = 0; i < 1000; ++i) {  // a second
    now_ += 1ms;
    take(0);
    rung += all_[0]->poll_bell().has_value();
  }
  EXPECT_GT(rung, 10);
  EXPECT_LT(rung, 20) << "less and less often";
  all_[1]->end_sleep();
  take(1);
  take(1);
  now_ += 1s;
  EXPECT_TRUE(all_[0]->begin_sleep());
  EXPECT_EQ(all_[0]->poll_bell(), std::nullopt);
  EXPECT_EQ(all_[0]->next_wake(), Instant::infinite_future());
}

TEST_F(ShmTransportTest, AWriterThatWaitsForRoomIsRungWhenThereIsSome) {
  make(2);
  fill(0, 1);
  EXPECT_TRUE(all_[0]->begin_sleep());
  EXPECT_EQ(all_[0]->next_wake(), now_ + ShmTransport::kStall);
  take(1);
  EXPECT_EQ(all_[1]->poll_bell(), std::nullopt) << "it reads what was lent";
  take(1);
  EXPECT_EQ(all_[1]->poll_bell(), Rank{0});
  all_[0]->end_sleep();
  EXPECT_FALSE(all_[0]->begin_sleep()) << "there is room now";
  EXPECT_TRUE(all_[0]->begin_sleep()) << "and nobody wants it";
}

TEST_F(ShmTransportTest, ThereIsNoSleepBesideAStalledReader) {
  make(2);
  fill(0, 1);
  now_ += ShmTransport::kStall;
  EXPECT_FALSE(all_[0]->begin_sleep()) << "what it had no room for can be lost now";
  EXPECT_TRUE(all_[0]->begin_sleep());
}

TEST_F(ShmTransportTest, ABrokenRingIsCountedOnceAndItsPeerIsReachedNoMore) {
  make(3);
  memory_[0].head->written.store(13);  // rank 0's ring to rank 1
  EXPECT_TRUE(take(1).empty());
  EXPECT_TRUE(take(1).empty());
  EXPECT_EQ(all_[1]->shm_counters().broken, 1u);
  EXPECT_FALSE(all_[1]->reaches(0));
  EXPECT_TRUE(all_[1]->reaches(2));
  EXPECT_EQ(send_one(*all_[1], OwnedTrain(0, 100, pattern(100)).train), 1u) << "lost";
  EXPECT_EQ(all_[1]->counters().send_errors, 1u);
  send_one(*all_[2], OwnedTrain(1, 100, pattern(100)).train);
  EXPECT_EQ(take(1).size(), 1u);
  EXPECT_TRUE(all_[1]->begin_sleep());
}

TEST_F(ShmTransportTest, APeerThatIsNotAttachedLosesWhatIsSentToIt) {
  make(1);
  EXPECT_EQ(send_one(*all_[0], OwnedTrain(5, 100, pattern(100)).train), 1u);
  EXPECT_EQ(all_[0]->counters().send_errors, 1u);
}

TEST_F(ShmTransportTest, WaitReturnsAtOnceWhereSomethingIsThere) {
  make(2);
  send_one(*all_[0], OwnedTrain(1, 100, pattern(100)).train);
  all_[1]->wait(1h);
  EXPECT_EQ(take(1).size(), 1u);
  all_[1]->wake();
  all_[1]->wait(1h);
}

}  // namespace
}  // namespace leeway::transport
