#include "transport/inproc/inproc_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;

constexpr InprocOptions kSmall{.datagram_bytes = 1000, .receive_buffer_bytes = 10'000};

TEST(InprocTransportSend, ATrainArrivesCutIntoItsDatagrams) {
  auto group = make_inproc_group(3);
  const OwnedTrain train(2, 100, pattern(350), {30, 100, 180});
  EXPECT_EQ(send_one(*group[0], train.train), 1u);
  std::vector<Received> out(8);
  ASSERT_EQ(group[2]->receive(out), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(out[i].from, 0);
    EXPECT_EQ(bytes_of(out[i].bytes), bytes_of(train.datagram(i)));
  }
  EXPECT_EQ(group[1]->receive(out), 0u);
}

TEST(InprocTransportSend, ARankMaySendToItself) {
  auto group = make_inproc_group(1);
  const OwnedTrain train(0, 100, pattern(100));
  send_one(*group[0], train.train);
  EXPECT_EQ(receive_all(*group[0], 1).at(0), train.memory);
}

TEST(InprocTransportSend, WhatFindsTheQueueFullIsDroppedAndCountedAtTheReceiver) {
  auto group = make_inproc_group(2, kSmall);
  const OwnedTrain train(1, 1000, pattern(50'000));
  EXPECT_EQ(send_one(*group[0], train.train), 1u);
  EXPECT_EQ(send_one(*group[0], train.train), 1u) << "a network never says that it is full";
  std::vector<Bytes> arrived;
  std::vector<Received> out(200);
  while (const std::size_t filled = group[1]->receive(out)) {
    for (std::size_t i = 0; i < filled; ++i) arrived.push_back(bytes_of(out[i].bytes));
  }
  EXPECT_GE(arrived.size(), 10u) << "the promised buffer";
  EXPECT_GT(group[1]->counters().kernel_drops, 0u);
  EXPECT_EQ(group[1]->counters().kernel_drops, 100 - arrived.size());
  for (std::size_t i = 0; i < arrived.size(); ++i)
    EXPECT_EQ(arrived[i], bytes_of(train.datagram(i % 50)));
}

TEST(InprocTransportSend, RoomComesBackWhenDatagramsWereTaken) {
  auto group = make_inproc_group(2, kSmall);
  const OwnedTrain train(1, 1000, pattern(10'000));
  for (int round = 0; round < 50; ++round) {
    send_one(*group[0], train.train);
    ASSERT_EQ(receive_all(*group[1], 10, 4).size(), 10u) << round;
  }
  EXPECT_EQ(group[1]->counters().kernel_drops, 0u);
}

TEST(InprocTransportSend, OversizedDatagramsAreDroppedAndTheRestOfTheTrainIsIntact) {
  auto group = make_inproc_group(2, kSmall);
  const OwnedTrain train(1, 1001, pattern(2 * 1001 + 10));
  send_one(*group[0], train.train);
  EXPECT_EQ(receive_all(*group[1], 1).at(0), bytes_of(train.datagram(2)));
  EXPECT_EQ(group[1]->counters().oversized, 2u);
}

TEST(InprocTransportReceive, LentBytesStayWhileOthersSend) {
  auto group = make_inproc_group(2, kSmall);
  const OwnedTrain first(1, 1000, pattern(5000, 1));
  const OwnedTrain second(1, 1000, pattern(15'000, 2));
  send_one(*group[0], first.train);
  std::vector<Received> out(5);
  ASSERT_EQ(group[1]->receive(out), 5u);
  send_one(*group[0], second.train);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(bytes_of(out[i].bytes), bytes_of(first.datagram(i)));
}

TEST(InprocTransportCounters, CountBothDirections) {
  auto group = make_inproc_group(2);
  const OwnedTrain train(1, 100, pattern(250));
  send_one(*group[0], train.train);
  receive_all(*group[1], 3);
  EXPECT_EQ(group[0]->counters().datagrams_sent, 3u);
  EXPECT_EQ(group[0]->counters().bytes_sent, 250u);
  EXPECT_EQ(group[1]->counters().datagrams_received, 3u);
  EXPECT_EQ(group[1]->counters().bytes_received, 250u);
}

TEST(InprocTransportWait, EndsForAWakeBeforehandAndOnlyOnce) {
  auto group = make_inproc_group(1);
  group[0]->wake();
  const auto start = std::chrono::steady_clock::now();
  group[0]->wait(60s);
  group[0]->wait(1ms);
  const Duration taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken, Duration(30s));
  EXPECT_GE(taken, Duration(1ms));
}

TEST(InprocTransportWait, EndsForAWakeOfAnotherThread) {
  auto group = make_inproc_group(1);
  std::atomic<bool> asked{false};
  std::thread waker([&] {
    asked = true;
    group[0]->wake();
  });
  const auto start = std::chrono::steady_clock::now();
  while (!asked) group[0]->wait(60s);
  waker.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

// Every rank sends numbered datagrams to every other. Each source's must arrive complete and in
// order.
TEST(InprocTransportThreads, ManySendersAndReceiversAtOnceLoseNothingWithinTheBuffer) {
  constexpr int kRanks = 4;
  constexpr std::uint32_t kDatagrams = 2000;
  auto group = make_inproc_group(kRanks, {.datagram_bytes = 512, .receive_buffer_bytes = 4u << 20});
  const auto run = [&](Rank self) {
    std::array<std::uint32_t, kRanks> next{};
    std::vector<Received> out(16);
    std::uint32_t arrived = 0;
    for (std::uint32_t serial = 0; serial < kDatagrams || arrived < (kRanks - 1) * kDatagrams;) {
      for (Rank to = 0; to < kRanks && serial < kDatagrams; ++to) {
        const OwnedTrain train(to, 512, pattern(400 + serial % 100, serial));
        if (to != self) send_one(*group[self], train.train);
      }
      serial += serial < kDatagrams ? 1 : 0;
      const std::size_t filled = group[self]->receive(out);
      for (std::size_t i = 0; i < filled; ++i, ++arrived) {
        const std::uint32_t expected = next[out[i].from]++;
        ASSERT_EQ(bytes_of(out[i].bytes), pattern(400 + expected % 100, expected));
      }
      if (filled == 0 && serial == kDatagrams) group[self]->wait(10ms);
    }
  };
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kRanks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  for (auto& transport : group) EXPECT_EQ(transport->counters().kernel_drops, 0u);
}

}  // namespace
}  // namespace leeway::transport
