#include "transport/shm/ring.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>

#include "unit/transport/datagrams.h"
#include "unit/transport/shared_pair.h"

namespace leeway::transport {
namespace {

constexpr std::size_t kDatagramMax = 32768;
constexpr std::size_t kOut = 64;

// Both ends of one ring, and its memory as a hostile peer can write it.
class RingTest : public testing::Test {
 protected:
  std::vector<Bytes> read(std::size_t most = kOut) {
    std::vector<Received> out(most);
    std::vector<Bytes> all;
    const std::size_t count = reader_.read(3, out, copies_.data());
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(out[i].from, 3);
      all.push_back(bytes_of(out[i].bytes));
    }
    return all;
  }
  bool put(const OwnedTrain& train) {
    const bool put = writer_.put(train.train);
    writer_.publish();
    return put;
  }
  // Writes the head of the record at `position`, as the peer may.
  void scribble(std::uint64_t position, const RecordHead& head) {
    std::memcpy(there_.data + position % there_.bytes, &head, sizeof(head));
  }
  void show(std::uint64_t written) { there_.head->written.store(written); }

  SharedPair pair_;
  const RingMemory there_ = pair_.creator.ring(0);
  RingWriter writer_{there_};
  RingReader reader_{pair_.opener.ring(0), kDatagramMax};
  Bytes copies_ = Bytes(kOut * RingReader::kCopiedBytesMax);
};

TEST_F(RingTest, ATrainArrivesCutIntoItsDatagrams) {
  const OwnedTrain train(1, 2000, pattern(7000), {1, 30, 1999, 5000});
  ASSERT_TRUE(put(train));
  const auto all = read();
  ASSERT_EQ(all.size(), 4u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], bytes_of(train.datagram(i)));
  EXPECT_TRUE(read().empty());
}

TEST_F(RingTest, WhatIsNotPublishedIsNotSeen) {
  const OwnedTrain train(1, 100, pattern(100));
  ASSERT_TRUE(writer_.put(train.train));
  EXPECT_TRUE(read().empty());
  writer_.publish();
  EXPECT_EQ(read().size(), 1u);
}

TEST_F(RingTest, ATrainIsLentInPartsWhereThereIsLittleRoom) {
  const OwnedTrain train(1, 2000, pattern(9000));
  ASSERT_TRUE(put(train));
  std::vector<Bytes> all;
  for (int i = 0; i < 3; ++i) {
    for (Bytes& datagram : read(2)) all.push_back(std::move(datagram));
    reader_.release();
  }
  ASSERT_EQ(all.size(), 5u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], bytes_of(train.datagram(i)));
}

// Lengths have no common divisor with the ring's length, so records begin, end and wrap at all
// places.
TEST_F(RingTest, RecordsGoOnBehindTheEndForAsLongAsOneLikes) {
  std::uint32_t sent = 0;
  std::uint32_t seen = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t bytes = 1 + (static_cast<std::size_t>(round) * 7919) % kTrainBytesMax;
    const OwnedTrain train(1, std::min<std::size_t>(bytes, 8972), pattern(bytes, sent++));
    ASSERT_TRUE(put(train)) << round;
    Bytes whole;
    for (const Bytes& datagram : read())
      whole.insert(whole.end(), datagram.begin(), datagram.end());
    ASSERT_EQ(whole, pattern(bytes, seen++)) << round;
    ASSERT_TRUE(reader_.release());
  }
  EXPECT_FALSE(reader_.broken() || writer_.broken());
}

TEST_F(RingTest, AFullRingTakesNothingUntilTheReaderGivesBack) {
  const OwnedTrain train(1, 8972, pattern(kTrainBytesMax));
  EXPECT_TRUE(put(train));
  EXPECT_TRUE(put(train));
  EXPECT_FALSE(put(train)) << "two fit into the smallest ring";
  EXPECT_EQ(read().size(), 16u);
  EXPECT_FALSE(put(train)) << "what is lent is not the writer's";
  EXPECT_TRUE(reader_.release());
  EXPECT_TRUE(put(train));
  EXPECT_EQ(read().size(), 8u);
}

TEST_F(RingTest, ShortDatagramsAreCopiedOut) {
  const OwnedTrain train(1, RingReader::kCopiedBytesMax, pattern(RingReader::kCopiedBytesMax));
  ASSERT_TRUE(put(train));
  std::vector<Received> out(1);
  ASSERT_EQ(reader_.read(3, out, copies_.data()), 1u);
  std::memset(there_.data, 0, there_.bytes);
  EXPECT_EQ(bytes_of(out[0].bytes), train.memory) << "the peer writes to what was read";
}

TEST_F(RingTest, NoncesComeBesideDatagrams) {
  const OwnedTrain train(1, 100, pattern(100));
  ASSERT_TRUE(put(train));
  EXPECT_TRUE(writer_.put(RecordKind::challenge, 7));
  EXPECT_TRUE(writer_.put(RecordKind::echo, 8));
  ASSERT_TRUE(put(train));
  EXPECT_EQ(read().size(), 2u);
  EXPECT_EQ(reader_.take_challenge(), 7u);
  EXPECT_EQ(reader_.take_echo(), 8u);
  EXPECT_EQ(reader_.take_challenge(), std::nullopt);
  EXPECT_TRUE(reader_.release());
  EXPECT_FALSE(writer_.unread());
}

TEST_F(RingTest, ASleeperIsSeenAndNoSleepBeginsInFrontOfADatagram) {
  EXPECT_EQ(writer_.reader_sleep(), 0u);
  EXPECT_TRUE(reader_.begin_sleep());
  const std::uint32_t first = writer_.reader_sleep();
  EXPECT_NE(first, 0u);
  reader_.end_sleep();
  EXPECT_EQ(writer_.reader_sleep(), 0u);
  EXPECT_TRUE(reader_.begin_sleep());
  EXPECT_NE(writer_.reader_sleep(), first) << "a sleep has a number of its own";
  reader_.end_sleep();
  ASSERT_TRUE(put(OwnedTrain(1, 100, pattern(100))));
  EXPECT_FALSE(reader_.begin_sleep());
  EXPECT_EQ(writer_.reader_sleep(), 0u);
}

TEST_F(RingTest, AWriterThatWaitsForRoomIsSeen) {
  const OwnedTrain train(1, 8972, pattern(kTrainBytesMax));
  EXPECT_FALSE(writer_.begin_waiting(train.memory.size())) << "there is room";
  while (put(train)) {
  }
  EXPECT_EQ(reader_.writer_wait(), 0u);
  EXPECT_TRUE(writer_.begin_waiting(train.memory.size()));
  EXPECT_NE(reader_.writer_wait(), 0u);
  read();
  EXPECT_TRUE(reader_.release());
  writer_.end_waiting();
  EXPECT_EQ(reader_.writer_wait(), 0u);
  EXPECT_TRUE(put(train));
}

TEST_F(RingTest, AReaderThatClaimsMoreThanItWasShownBreaksTheRing) {
  const OwnedTrain train(1, 8972, pattern(kTrainBytesMax));
  while (put(train)) {
  }
  for (const std::uint64_t claim : {std::uint64_t{1} << 20, ~std::uint64_t{0}}) {
    RingWriter writer(there_);
    there_.head->released.store(claim);
    EXPECT_FALSE(writer.unread());
    EXPECT_TRUE(writer.broken()) << claim;
    EXPECT_FALSE(writer.put(train.train));
  }
}

TEST_F(RingTest, AReaderThatGoesBackBreaksTheRing) {
  const OwnedTrain train(1, 8972, pattern(kTrainBytesMax));
  while (put(train)) {
  }
  read();
  reader_.release();
  ASSERT_TRUE(put(train));
  ASSERT_TRUE(put(train));
  there_.head->released.store(0);
  EXPECT_FALSE(put(train));
  EXPECT_TRUE(writer_.broken());
}

// No writer can have these positions: within a record, beyond the ring's length, or before what was
// read.
TEST_F(RingTest, AWrittenPositionThatCannotBeBreaksTheRing) {
  for (const std::uint64_t claim :
       {std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{kRingBytesMin + 64},
        ~std::uint64_t{0} - 63, std::uint64_t{1} << 63}) {
    SharedPair pair;
    RingReader reader(pair.opener.ring(0), kDatagramMax);
    pair.creator.ring(0).head->written.store(claim);
    std::array<Received, 4> out;
    EXPECT_EQ(reader.read(3, out, copies_.data()), 0u);
    EXPECT_TRUE(reader.broken()) << claim;
    EXPECT_FALSE(reader.unread());
    EXPECT_FALSE(reader.release());
  }
}

TEST_F(RingTest, AHeadThatCannotBeBreaksTheRing) {
  const auto train = static_cast<std::uint32_t>(RecordKind::train);
  const auto echo = static_cast<std::uint32_t>(RecordKind::echo);
  const std::vector<RecordHead> heads = {
      {0, 100, 100, 0},                              // no kind
      {train + 1, 100, 100, 0},                      // another
      {train, 0, 100, 0},                            // a train of no bytes
      {train, 100, 0, 0},                            // cut into nothing
      {train, 100, kDatagramMax + 1, 0},             // datagrams too long
      {train, 65, 1, 0},                             // more than 64 of them
      {train, 1000, 100, 0},                         // longer than what was written
      {train, kTrainBytesMax + 1, kDatagramMax, 0},  // longer than any
      {train, UINT32_MAX, kDatagramMax, 0},
      {echo, 7, 0, 0},
      {echo, 16, 0, 0},
  };
  for (const RecordHead& head : heads) {
    SharedPair pair;
    RingReader reader(pair.opener.ring(0), kDatagramMax);
    std::memcpy(pair.creator.ring(0).data, &head, sizeof(head));
    pair.creator.ring(0).head->written.store(256);
    std::array<Received, 4> out;
    EXPECT_EQ(reader.read(3, out, copies_.data()), 0u);
    EXPECT_TRUE(reader.broken()) << head.kind << ' ' << head.bytes << ' ' << head.segment_bytes;
    EXPECT_FALSE(reader.take_echo().has_value());
  }
}

TEST_F(RingTest, GoodRecordsBeforeABadOneAreStillRead) {
  const OwnedTrain train(1, 100, pattern(100));
  ASSERT_TRUE(put(train));
  scribble(record_bytes(100), {0x12345678, 100, 100, 0});
  show(2 * record_bytes(100));
  EXPECT_EQ(read().size(), 1u);
  EXPECT_TRUE(reader_.broken());
}

// Two threads stand for two processes. What is read must be what was written, in order.
TEST_F(RingTest, ConcurrentEndsLoseAndMixNothing) {
  constexpr std::uint32_t kTrains = 3000;
  std::thread sending([this] {
    for (std::uint32_t i = 0; i < kTrains; ++i) {
      const std::size_t bytes = 1 + (std::size_t{i} * 104729) % 20'000;
      const OwnedTrain train(1, 4000, pattern(bytes, i));
      while (!put(train)) std::this_thread::yield();
    }
  });
  std::uint32_t seen = 0;
  std::size_t wrong = 0;
  Bytes whole;
  while (seen < kTrains && !reader_.broken()) {
    reader_.release();
    const auto all = read();
    if (all.empty()) std::this_thread::yield();
    for (const Bytes& datagram : all) {
      whole.insert(whole.end(), datagram.begin(), datagram.end());
      if (whole.size() < 1 + (std::size_t{seen} * 104729) % 20'000) continue;
      wrong += whole != pattern(whole.size(), seen++);
      whole.clear();
    }
  }
  sending.join();
  EXPECT_EQ(seen, kTrains);
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace leeway::transport
