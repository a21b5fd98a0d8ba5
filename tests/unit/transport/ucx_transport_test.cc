#include "transport/ucx/ucx_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "unit/transport/ucx_group.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;

// Bytes that fit one fragment, on this host's devices or on those that the environment selects.
constexpr std::size_t kLargest = 32384;
constexpr std::size_t kUsual = 8128;

// Runs over shared memory and over TCP.
class UcxTransportOver : public testing::TestWithParam<const char*> {
 protected:
  UcxGroup group(int size) { return make_ucx_group(size, GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(, UcxTransportOver, testing::Values("self,posix", "self,sysv", "self,tcp"),
                         [](const auto& over) { return std::string(over.param).substr(5); });

TEST_P(UcxTransportOver, ATrainArrivesCutIntoItsDatagrams) {
  UcxGroup ranks = group(3);
  const OwnedTrain train(2, 1000, pattern(3500), {300, 1000, 1800});
  EXPECT_EQ(send_one(*ranks[0], train.train), 1u);
  const std::vector<Bytes> arrived = collect(ranks, 2, 4);
  ASSERT_EQ(arrived.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(arrived[i], bytes_of(train.datagram(i)));
  EXPECT_TRUE(collect(ranks, 2, 0).empty());
}

TEST_P(UcxTransportOver, DatagramsOfEverySizeArriveInOrderAndSayWhoSentThem) {
  UcxGroup ranks = group(2);
  const std::size_t sizes[] = {1, 36, 127, 128, 129, 512, 4096, 8128, kLargest - 1, kLargest};
  for (const std::size_t bytes : sizes) {
    const OwnedTrain train(1, bytes, pattern(bytes, static_cast<std::uint32_t>(bytes)),
                           {bytes / 3});
    EXPECT_EQ(send_one(*ranks[0], train.train), 1u);
  }
  const std::vector<Bytes> arrived = collect(ranks, 1, std::size(sizes));
  ASSERT_EQ(arrived.size(), std::size(sizes));
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    EXPECT_EQ(arrived[i], pattern(sizes[i], static_cast<std::uint32_t>(sizes[i])));
  }
  const OwnedTrain last(1, 100, pattern(100));
  send_one(*ranks[0], last.train);
  std::vector<Received> out(1);
  while (ranks[1]->receive(out) == 0) turn(*ranks[0]);
  EXPECT_EQ(out[0].from, 0);
}

// Sends trains of seven datagrams and overwrites their memory at once. All must arrive unharmed.
void expect_unharmed(UcxGroup& ranks, std::uint32_t trains) {
  const std::size_t bytes = ranks[0]->limits().datagram_bytes_max;
  for (std::uint32_t i = 0; i < trains; ++i) {
    OwnedTrain train(1, bytes, pattern(7 * bytes, i), {52, bytes, bytes + 52});
    ASSERT_EQ(send_one(*ranks[0], train.train), 1u);
    ASSERT_EQ(ranks[0]->borrowed(), 0u);
    std::fill(train.memory.begin(), train.memory.end(), std::byte{0xEE});
  }
  const std::vector<Bytes> arrived = collect(ranks, 1, 7 * trains, 16);
  ASSERT_EQ(arrived.size(), 7 * trains);
  for (std::uint32_t i = 0; i < arrived.size(); ++i) {
    const Bytes whole = pattern(7 * bytes, i / 7);
    ASSERT_EQ(arrived[i], bytes_of(ByteSpan(whole).subspan(i % 7 * bytes, bytes))) << i;
  }
}

TEST_P(UcxTransportOver, TheSendersMemoryIsFreeAtOnceEvenWhereDatagramsWait) {
  UcxGroup ranks = group(2);
  expect_unharmed(ranks, 36);  // not connected yet, so all of them wait
  expect_unharmed(ranks, 36);
}

TEST_P(UcxTransportOver, LentBytesStayWhileOthersArrive) {
  UcxGroup ranks = group(2);
  const OwnedTrain first(1, 1000, pattern(5000, 1));
  const OwnedTrain second(1, 1000, pattern(15'000, 2));
  send_one(*ranks[0], first.train);
  std::vector<Received> out(5);
  std::size_t filled = 0;
  while (filled == 0) {
    turn(*ranks[0]);
    filled = ranks[1]->receive(out);
  }
  send_one(*ranks[0], second.train);
  ranks[1]->wait(10ms);
  for (std::size_t i = 0; i < filled; ++i)
    EXPECT_EQ(bytes_of(out[i].bytes), bytes_of(first.datagram(i)));
}

TEST_P(UcxTransportOver, RoomComesBackWhenDatagramsWereTaken) {
  UcxGroup ranks = group(2);
  const OwnedTrain train(1, 200, pattern(60 * 200));
  for (int round = 0; round < 100; ++round) {
    send_one(*ranks[0], train.train);
    ASSERT_EQ(collect(ranks, 1, 60, 16).size(), 60u) << round;
  }
  EXPECT_EQ(ranks[1]->counters().kernel_drops, 0u);
}

TEST_P(UcxTransportOver, WaitIsOverWhileSomethingIsLeftToReceive) {
  UcxGroup ranks = group(2);
  const OwnedTrain train(1, 200, pattern(60 * 200));
  send_one(*ranks[0], train.train);
  std::vector<Received> one(1);
  const auto start = std::chrono::steady_clock::now();
  for (int arrived = 0; arrived < 60;) {
    if (const std::size_t filled = ranks[1]->receive(one)) {
      arrived += static_cast<int>(filled);
      if (arrived < 60 && arrived > 30) ranks[1]->wait(10s);
    } else {
      turn(*ranks[0]);
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST_P(UcxTransportOver, WaitEndsWhenADatagramIsHere) {
  UcxGroup ranks = group(2);
  const OwnedTrain hello(1, 100, pattern(100));
  send_one(*ranks[0], hello.train);  // connected
  ASSERT_EQ(collect(ranks, 1, 1).size(), 1u);
  std::atomic<bool> stop{false};
  std::thread sender([&] {
    std::this_thread::sleep_for(20ms);
    send_one(*ranks[0], hello.train);
    while (!stop) turn(*ranks[0]);
  });
  const auto start = std::chrono::steady_clock::now();
  std::vector<Received> out(4);
  while (ranks[1]->receive(out) == 0) ranks[1]->wait(60s);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  stop = true;
  sender.join();
}

TEST_P(UcxTransportOver, StrangersAreRefusedAndCounted) {
  UcxGroup ranks = group(2);
  auto stranger = UcxTransport::open({}).value();
  const std::vector<std::vector<std::byte>> claimed = {ranks[0]->local_address(),
                                                       stranger->local_address()};
  ASSERT_TRUE(stranger->set_peers(claimed, 1).ok());
  const OwnedTrain train(0, 1000, pattern(3000));
  send_one(*stranger, train.train);
  const auto start = std::chrono::steady_clock::now();
  std::vector<Received> out(8);
  while (ranks[0]->counters().from_strangers < 3 &&
         std::chrono::steady_clock::now() - start < 10s) {
    turn(*stranger);
    EXPECT_EQ(ranks[0]->receive(out), 0u);
  }
  EXPECT_EQ(ranks[0]->counters().from_strangers, 3u);
  EXPECT_EQ(ranks[0]->counters().datagrams_received, 0u);
}

TEST_P(UcxTransportOver, APeerThatIsGoneNeitherStopsNorFillsTheSender) {
  UcxGroup ranks = group(3);
  const OwnedTrain hello(1, 100, pattern(100));
  send_one(*ranks[0], hello.train);
  ASSERT_EQ(collect(ranks, 1, 1).size(), 1u);
  ranks[1].reset();
  const OwnedTrain train(1, kLargest, pattern(7 * kLargest));
  for (int i = 0; i < 400; ++i) {
    send_one(*ranks[0], train.train);
    turn(*ranks[0]);
  }
  const OwnedTrain other(2, 1000, pattern(1000));
  EXPECT_EQ(send_one(*ranks[0], other.train), 1u);
  EXPECT_EQ(collect(ranks, 2, 1).size(), 1u);
}

// The receiver is killed, so its end is never closed.
TEST_P(UcxTransportOver, AKilledProcessNeitherStopsNorFillsTheSender) {
  int to_child[2];
  int to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  setenv("UCX_TLS", GetParam(), 1);
  const auto send_address = [](int fd, const UcxTransport& from) {
    std::array<std::byte, UcxTransport::kAddressBytesMax> padded{};
    const std::uint32_t bytes = static_cast<std::uint32_t>(from.local_address().size());
    std::copy_n(from.local_address().data(), bytes, padded.data());
    return write(fd, &bytes, sizeof(bytes)) > 0 && write(fd, padded.data(), padded.size()) > 0;
  };
  const auto read_address = [](int fd) {
    std::array<std::byte, UcxTransport::kAddressBytesMax> padded{};
    std::uint32_t bytes = 0;
    if (read(fd, &bytes, sizeof(bytes)) <= 0 || read(fd, padded.data(), padded.size()) <= 0)
      std::_Exit(2);
    return std::vector<std::byte>(padded.data(), padded.data() + bytes);
  };
  const pid_t child = fork();
  if (child == 0) {
    auto rank1 = UcxTransport::open({}).value();
    if (!send_address(to_parent[1], *rank1)) std::_Exit(2);
    const std::vector<std::vector<std::byte>> peers = {read_address(to_child[0]),
                                                       rank1->local_address()};
    if (!rank1->set_peers(peers, 1).ok()) std::_Exit(2);
    std::vector<Received> out(8);
    while (rank1->receive(out) == 0) {
    }
    kill(getpid(), SIGKILL);
  }
  auto rank0 = UcxTransport::open({}).value();
  ASSERT_TRUE(send_address(to_child[1], *rank0));
  const std::vector<std::vector<std::byte>> peers = {rank0->local_address(),
                                                     read_address(to_parent[0])};
  ASSERT_TRUE(rank0->set_peers(peers, 0).ok());
  const OwnedTrain train(1, kLargest, pattern(7 * kLargest));
  send_one(*rank0, train.train);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) turn(*rank0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 400; ++i) {
    EXPECT_EQ(send_one(*rank0, train.train), 1u);
    turn(*rank0);
  }
  rank0->wait(1ms);
  EXPECT_GT(rank0->counters().send_errors, 0u);
  rank0.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST(UcxTransportSend, WhatAStoppedPeerDoesNotTakeIsDroppedAndCountedBeyondABound) {
  UcxGroup ranks = make_ucx_group(2);
  const OwnedTrain train(1, 1000, pattern(50'000));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(send_one(*ranks[0], train.train), 1u);
  const TransportCounters sender = ranks[0]->counters();
  EXPECT_GT(sender.send_errors, 0u);
  EXPECT_GE(sender.datagrams_sent, 256u);
  const std::vector<Bytes> arrived = collect(ranks, 1, 1000);
  EXPECT_EQ(arrived.size(), sender.datagrams_sent);
}

TEST(UcxTransportSend, DatagramsBeyondTheLimitAreLostAndCounted) {
  UcxGroup ranks = make_ucx_group(2);
  const OwnedTrain large(1, kLargest + 1, pattern(kLargest + 1));
  const OwnedTrain right(1, kLargest, pattern(kLargest));
  EXPECT_EQ(send_one(*ranks[0], large.train), 1u);
  EXPECT_EQ(ranks[0]->counters().send_errors, 1u);
  EXPECT_EQ(send_one(*ranks[0], right.train), 1u);
  EXPECT_EQ(collect(ranks, 1, 1).size(), 1u);
}

TEST(UcxTransportSend, DatagramsThatADeviceTakesInPiecesComeTogetherAgain) {
  setenv("UCX_POSIX_SEG_SIZE", "2048", 1);
  UcxGroup ranks = make_ucx_group(2);
  unsetenv("UCX_POSIX_SEG_SIZE");
  expect_unharmed(ranks, 1);
  expect_unharmed(
      ranks,
      30);  // connected: the last ones wait, and go out in pieces from where they were copied to
}

TEST(UcxTransportSend, ARankMaySendToItself) {
  UcxGroup ranks = make_ucx_group(1);
  const OwnedTrain train(0, 100, pattern(100));
  send_one(*ranks[0], train.train);
  EXPECT_EQ(collect(ranks, 0, 1).at(0), train.memory);
}

TEST(UcxTransportWait, EndsForAWakeBeforehandAndOnlyOnce) {
  UcxGroup ranks = make_ucx_group(1);
  ranks[0]->wake();
  const auto start = std::chrono::steady_clock::now();
  ranks[0]->wait(60s);
  ranks[0]->wait(1ms);
  const Duration taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken, Duration(30s));
  EXPECT_GE(taken, Duration(1ms));
}

TEST(UcxTransportWait, EndsForAWakeOfAnotherThread) {
  UcxGroup ranks = make_ucx_group(1);
  std::thread waker([&] {
    std::this_thread::sleep_for(20ms);
    ranks[0]->wake();
  });
  const auto start = std::chrono::steady_clock::now();
  ranks[0]->wait(60s);
  waker.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

// UCX's wake-up does not reach a thread that sleeps in another network namespace, as with two
// containers with --ipc=host. So wait() must not rely on it.
TEST(UcxTransportWait, IsOverSoonForASleeperInAnotherNetworkNamespace) {
  for (const char* devices : {"self,posix", "self,sysv"}) {
    setenv("UCX_TLS", devices, 1);
    UcxGroup ranks(2);
    ranks[0] = UcxTransport::open({}).value();
    std::thread([&] {
      if (unshare(CLONE_NEWNET) == 0) ranks[1] = UcxTransport::open({}).value();
    }).join();
    if (ranks[1] == nullptr) GTEST_SKIP() << "no permission for a network namespace";
    const std::vector<std::vector<std::byte>> addresses = {ranks[0]->local_address(),
                                                           ranks[1]->local_address()};
    for (Rank rank = 0; rank < 2; ++rank) ASSERT_TRUE(ranks[rank]->set_peers(addresses, rank).ok());
    const OwnedTrain hello(1, 100, pattern(100));
    send_one(*ranks[0], hello.train);  // connected
    ASSERT_EQ(collect(ranks, 1, 1).size(), 1u);
    std::thread sender([&] {
      std::this_thread::sleep_for(20ms);
      send_one(*ranks[0], hello.train);
    });
    const auto start = std::chrono::steady_clock::now();
    std::vector<Received> out(4);
    while (ranks[1]->receive(out) == 0) ranks[1]->wait(20s);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s) << devices;
    sender.join();
  }
}

TEST(UcxTransportLimits, DatagramsAreAsLongAsOnePieceOfTheDevicesUnlessTheUserCutsThose) {
  EXPECT_EQ(make_ucx_group(1)[0]->limits().datagram_bytes_max, kLargest);
  EXPECT_EQ(make_ucx_group(1, "self,tcp")[0]->limits().datagram_bytes_max, kLargest);
  EXPECT_EQ(
      make_ucx_group(1, "self,posix", {.datagram_bytes = 1472})[0]->limits().datagram_bytes_max,
      1472u);
  setenv("UCX_SYSV_SEG_SIZE", "8256", 1);
  const UcxGroup cut = make_ucx_group(1);
  unsetenv("UCX_SYSV_SEG_SIZE");
  EXPECT_EQ(cut[0]->limits().datagram_bytes_max, kUsual);
}

TEST(UcxTransportLimits, MemoryKeepsBytesIntactAndTcpIsNotTakenToDoSo) {
  EXPECT_TRUE(make_ucx_group(2, "self,posix")[1]->limits().intact);
  EXPECT_TRUE(make_ucx_group(2, "self,sysv")[1]->limits().intact);
  EXPECT_FALSE(make_ucx_group(2, "self,tcp")[1]->limits().intact);
}

TEST(UcxTransportPeers, AddressesThatAreNotOursAreRefusedNamingTheRank) {
  setenv("UCX_TLS", "self,posix", 1);
  auto transport = UcxTransport::open({}).value();
  std::vector<std::vector<std::byte>> peers = {transport->local_address(), {}};
  EXPECT_THAT(transport->set_peers(peers, 0).c_str(), testing::HasSubstr("rank 1"));
}

}  // namespace
}  // namespace leeway::transport
