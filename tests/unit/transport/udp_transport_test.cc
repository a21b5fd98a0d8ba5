// Tests UDP over real sockets on loopback, independent of timing. A loopback datagram is assumed to
// arrive if it fits the receiver's buffer.
#include "transport/udp/udp_transport.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>
#include <atomic>
#include <thread>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;

struct Mode {
  bool gso;
  bool gro;
  bool v6;
};

class UdpTransportModes : public testing::TestWithParam<Mode> {
 protected:
  static UdpOptions options() {
    UdpOptions options;
    options.use_gso = GetParam().gso;
    options.use_gro = GetParam().gro;
    if (GetParam().v6) options.bind_address = asio::ip::address_v6::loopback();
    return options;
  }
  void SetUp() override {
    if (!GetParam().v6) return;
    // Asks the system and not the tested code, so that a transport that cannot open fails the test.
    asio::io_context io;
    asio::ip::udp::socket socket(io);
    std::error_code no_v6;
    socket.open(asio::ip::udp::v6(), no_v6);
    if (!no_v6) socket.bind({asio::ip::address_v6::loopback(), 0}, no_v6);
    if (no_v6) GTEST_SKIP() << "this host has no IPv6 loopback: " << no_v6.message();
  }
};

TEST_P(UdpTransportModes, TrainsArriveCutIntoTheirDatagramsInOrder) {
  auto group = make_udp_group(2, options());
  const OwnedTrain train(1, 1472, pattern(43 * 1472 + 77), {52, 1472, 1524, 40'000});
  ASSERT_EQ(send_one(*group[0], train.train), 1u);
  const std::vector<Bytes> arrived = receive_all(*group[1], train.datagrams());
  ASSERT_EQ(arrived.size(), 44u);
  for (std::size_t i = 0; i < arrived.size(); ++i)
    EXPECT_EQ(arrived[i], bytes_of(train.datagram(i))) << i;
  EXPECT_EQ(group[0]->counters().datagrams_sent, 44u);
  EXPECT_EQ(group[1]->counters().datagrams_received, 44u);
  EXPECT_EQ(group[1]->counters().bytes_received, train.memory.size());
}

TEST_P(UdpTransportModes, WhatMayBeMarkedSaysSo) {
  auto group = make_udp_group(2, options());
  for (const bool capable : {false, true}) {
    if (capable) group[0]->allow_marks();
    const OwnedTrain train(1, 1000, pattern(3500));
    ASSERT_EQ(send_one(*group[0], train.train), 1u);
    std::array<Received, 8> arrived;
    for (std::size_t left = 4; left > 0;) {
      group[1]->wait(1s);
      const std::size_t count = group[1]->receive(arrived);
      ASSERT_GT(count, 0u);
      for (const Received& datagram : std::span(arrived).first(count))
        EXPECT_EQ(datagram.ecn, capable ? Ecn::ect0 : Ecn::none);
      left -= count;
    }
  }
}

TEST_P(UdpTransportModes, JumboTrainsAndLoneDatagramsMix) {
  auto group = make_udp_group(2, options());
  const std::size_t jumbo = group[0]->limits().datagram_bytes_max;
  const OwnedTrain large(1, jumbo, pattern(7 * jumbo, 1));
  const OwnedTrain small(1, jumbo, pattern(20, 2));
  const std::vector<Train> trains = {large.train, small.train, large.train};
  ASSERT_EQ(group[0]->send(trains), 3u);
  const std::vector<Bytes> arrived = receive_all(*group[1], 15, 4);
  ASSERT_EQ(arrived.size(), 15u);
  EXPECT_EQ(arrived[7], small.memory);
  EXPECT_EQ(arrived[14], bytes_of(large.datagram(6)));
}

TEST_P(UdpTransportModes, TheLargestTrainGoesOut) {
  auto group = make_udp_group(2, options());
  const OwnedTrain train(1, 1023, pattern(64 * 1023));
  ASSERT_LE(train.memory.size(), group[0]->limits().train_bytes_max);
  ASSERT_EQ(train.datagrams(), group[0]->limits().train_datagrams_max);
  ASSERT_EQ(send_one(*group[0], train.train), 1u);
  EXPECT_EQ(receive_all(*group[1], 64).size(), 64u);
  EXPECT_EQ(group[0]->counters().send_errors, 0u);
}

TEST_P(UdpTransportModes, EachDatagramNamesItsSender) {
  auto group = make_udp_group(3, options());
  const OwnedTrain train(0, 600, pattern(600));
  send_one(*group[2], train.train);
  std::vector<Received> out(4);
  std::size_t filled = 0;
  for (int i = 0; i < 20 && (filled = group[0]->receive(out)) == 0; ++i) group[0]->wait(100ms);
  ASSERT_EQ(filled, 1u);
  EXPECT_EQ(out[0].from, 2);
}

INSTANTIATE_TEST_SUITE_P(Offloads, UdpTransportModes,
                         testing::Values(Mode{false, false, false}, Mode{true, false, false},
                                         Mode{false, true, false}, Mode{true, true, false},
                                         Mode{true, true, true}, Mode{false, false, true}),
                         [](const auto& test) {
                           return std::string(test.param.v6 ? "V6" : "V4") +
                                  (test.param.gso ? "Gso" : "") + (test.param.gro ? "Gro" : "");
                         });

TEST(UdpTransportReceive, StrangersAreCountedAndNeverShown) {
  auto group = make_udp_group(2);
  auto stranger = UdpTransport::open({}).value();
  const std::vector<UdpAddress> view = {group[0]->local_address(), stranger->local_address()};
  ASSERT_TRUE(stranger->set_peers(view).ok());
  const OwnedTrain from_stranger(0, 512, pattern(3 * 512));
  const OwnedTrain from_peer(0, 512, pattern(512, 5));
  send_one(*stranger, from_stranger.train);
  send_one(*group[1], from_peer.train);
  const std::vector<Bytes> arrived = receive_all(*group[0], 1);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0], from_peer.memory);
  EXPECT_EQ(group[0]->counters().from_strangers, 3u);
}

TEST(UdpTransportReceive, DatagramsLargerThanAgreedAreDroppedAndCounted) {
  for (const bool gro : {false, true}) {
    UdpOptions options;
    options.use_gro = gro;
    options.datagram_bytes = 1000;
    auto group = make_udp_group(2, options);
    const OwnedTrain large(1, 1001, pattern(1001));
    const OwnedTrain fits(1, 1000, pattern(1000, 3));
    send_one(*group[0], large.train);
    send_one(*group[0], fits.train);
    EXPECT_EQ(receive_all(*group[1], 1).at(0), fits.memory);
    EXPECT_EQ(group[1]->counters().oversized, 1u);
  }
}

TEST(UdpTransportReceive, WhatOverflowsTheSocketIsCountedAsTheKernelsDrop) {
  UdpOptions options;
  options.socket_buffer_bytes = 64 << 10;
  auto group = make_udp_group(2, options);
  const OwnedTrain train(1, 1472, pattern(44 * 1472));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(send_one(*group[0], train.train), 1u);
  std::size_t arrived = 0;
  std::vector<Received> out(64);
  while (const std::size_t filled = group[1]->receive(out)) arrived += filled;
  EXPECT_LT(arrived, 20u * 44u);
  EXPECT_GT(group[1]->counters().kernel_drops, 0u);
}

TEST(UdpTransportWait, ReturnsAtOnceWhileDatagramsAreLeftOver) {
  auto group = make_udp_group(2);
  const OwnedTrain train(1, 100, pattern(1000));
  send_one(*group[0], train.train);
  std::vector<Received> one(1);
  while (group[1]->receive(one) == 0) group[1]->wait(100ms);
  const auto start = std::chrono::steady_clock::now();
  group[1]->wait(60s);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
}

TEST(UdpTransportWait, EndsForAWakeOfAnotherThread) {
  auto group = make_udp_group(1);
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

TEST(UdpTransportOpen, APortInUseIsAnError) {
  auto first = UdpTransport::open({}).value();
  UdpOptions options;
  options.port = first->local_address().port();
  EXPECT_EQ(UdpTransport::open(options).status().code(), StatusCode::kUnavailable);
}

// A child that outlives its parent's transport would take the next transport's datagrams.
TEST(UdpTransportOpen, AForkedChildDoesNotHoldThePort) {
  auto first = UdpTransport::open({}).value();
  UdpOptions options;
  options.port = first->local_address().port();
  std::array<int, 2> to_child{}, to_parent{};
  ASSERT_EQ(::pipe(to_child.data()) + ::pipe(to_parent.data()), 0);
  char byte = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(to_child[1]);
    (void)!::write(to_parent[1], &byte, 1);
    (void)!::read(to_child[0], &byte, 1);  // until the parent is done
    ::_exit(0);
  }
  ASSERT_EQ(::read(to_parent[0], &byte, 1), 1);
  first.reset();
  EXPECT_TRUE(UdpTransport::open(options).ok());
  ::close(to_child[1]);
  ::waitpid(child, nullptr, 0);
  for (const int end : {to_child[0], to_parent[0], to_parent[1]}) ::close(end);
}

TEST(UdpTransportOpen, DatagramSizesOutOfRangeAreRefused) {
  UdpOptions options;
  options.datagram_bytes = 511;
  EXPECT_EQ(UdpTransport::open(options).status().code(), StatusCode::kInvalidArgument);
  options.datagram_bytes = 9217;
  EXPECT_EQ(UdpTransport::open(options).status().code(), StatusCode::kInvalidArgument);
  options.datagram_bytes = 512;
  EXPECT_TRUE(UdpTransport::open(options).ok());
}

TEST(UdpTransportOpen, AForeignBindAddressIsRefusedByName) {
  UdpOptions options;
  options.bind_address = asio::ip::make_address("192.0.2.7");
  options.datagram_bytes = 1472;
  const auto refused = UdpTransport::open(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("192.0.2.7"), std::string_view::npos);
}

}  // namespace
}  // namespace leeway::transport
