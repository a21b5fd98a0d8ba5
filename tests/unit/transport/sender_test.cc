// A script replaces the system call, so that tests can make any answer of the kernel.
#include "transport/udp/sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>

#include <cerrno>
#include <deque>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

struct SentMessage {
  Bytes bytes;
  std::size_t segment = 0;  // without UDP_SEGMENT if 0
  int port = 0;
};

// The kernel's answers to the next calls: a number above 0 is the maximum number of messages that
// it accepts, a number below 0 an error. After the script, it accepts all.
struct Kernel {
  std::deque<int> answers;
  std::vector<SentMessage> sent;
  int calls = 0;
};
Kernel* kernel = nullptr;

SentMessage read_message(const msghdr& header) {
  SentMessage message;
  for (std::size_t i = 0; i < header.msg_iovlen; ++i) {
    const auto* data = static_cast<const std::byte*>(header.msg_iov[i].iov_base);
    message.bytes.insert(message.bytes.end(), data, data + header.msg_iov[i].iov_len);
  }
  message.port = ntohs(static_cast<const sockaddr_in*>(header.msg_name)->sin_port);
  msghdr copy = header;
  if (const cmsghdr* note = CMSG_FIRSTHDR(&copy);
      note != nullptr && note->cmsg_type == UDP_SEGMENT) {
    std::uint16_t segment = 0;
    std::memcpy(&segment, CMSG_DATA(note), sizeof(segment));
    message.segment = segment;
  }
  return message;
}

int scripted_sendmmsg(int, mmsghdr* messages, unsigned count, int) {
  ++kernel->calls;
  int taken = static_cast<int>(count);
  if (!kernel->answers.empty()) {
    taken = std::min(taken, kernel->answers.front());
    kernel->answers.pop_front();
  }
  if (taken < 0) {
    errno = -taken;
    return -1;
  }
  for (int i = 0; i < taken; ++i) kernel->sent.push_back(read_message(messages[i].msg_hdr));
  return taken;
}

class UdpSenderSend : public testing::Test {
 protected:
  UdpSenderSend() {
    kernel = &kernel_;
    const std::vector<UdpAddress> addresses = {{asio::ip::address_v4::loopback(), 1000},
                                               {asio::ip::address_v4::loopback(), 1001},
                                               {asio::ip::address_v4::loopback(), 1002}};
    EXPECT_TRUE(peers_.assign(addresses).ok());
  }
  ~UdpSenderSend() override { kernel = nullptr; }

  UdpSender sender(bool segmentation) {
    counters_ = {};
    return UdpSender(-1, segmentation, peers_, counters_, &scripted_sendmmsg);
  }

  Kernel kernel_;
  PeerTable peers_;
  TransportCounters counters_;  // of the latest sender()
};

TEST_F(UdpSenderSend, ATrainIsOneMessageGatheredFromItsSlices) {
  UdpSender udp = sender(true);
  const OwnedTrain train(2, 100, pattern(250), {30, 100, 130, 200});
  EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u);
  ASSERT_EQ(kernel_.sent.size(), 1u);
  EXPECT_EQ(kernel_.sent[0].bytes, train.memory);
  EXPECT_EQ(kernel_.sent[0].segment, 100u);
  EXPECT_EQ(kernel_.sent[0].port, 1002);
  EXPECT_EQ(counters_.datagrams_sent, 3u);
  EXPECT_EQ(counters_.bytes_sent, 250u);
}

TEST_F(UdpSenderSend, ATrainOfOneDatagramNeedsNoSegmentation) {
  UdpSender udp = sender(true);
  const OwnedTrain train(1, 100, pattern(100));
  EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u);
  EXPECT_EQ(kernel_.sent.at(0).segment, 0u);
}

TEST_F(UdpSenderSend, ManyTrainsShareCallsAndKeepTheirOrder) {
  UdpSender udp = sender(true);
  std::deque<OwnedTrain> owned;
  std::vector<Train> trains;
  for (std::uint32_t i = 0; i < 40; ++i) {
    trains.push_back(owned.emplace_back(static_cast<Rank>(i % 3), 50, pattern(50 + i, i)).train);
  }
  EXPECT_EQ(udp.send(trains), 40u);
  EXPECT_LE(kernel_.calls, 3);
  ASSERT_EQ(kernel_.sent.size(), 40u);
  for (std::uint32_t i = 0; i < 40; ++i) {
    EXPECT_EQ(kernel_.sent[i].bytes, pattern(50 + i, i));
    EXPECT_EQ(kernel_.sent[i].port, static_cast<int>(1000 + i % 3));
  }
}

TEST_F(UdpSenderSend, WithoutSegmentationEveryDatagramIsAMessage) {
  UdpSender udp = sender(false);
  const OwnedTrain train(1, 100, pattern(250), {30, 100, 130, 200});
  EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u);
  ASSERT_EQ(kernel_.sent.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(kernel_.sent[i].bytes, bytes_of(train.datagram(i)));
  EXPECT_EQ(counters_.datagrams_sent, 3u);
  EXPECT_EQ(counters_.bytes_sent, 250u);
}

TEST_F(UdpSenderSend, WhatTheSystemRefusesIsKeptForEachPeer) {
  UdpSender udp = sender(true);
  EXPECT_EQ(udp.last_refusals().count, 0u);
  const OwnedTrain first(1, 100, pattern(100));
  const OwnedTrain second(2, 100, pattern(100));
  kernel_.answers = {-ENETUNREACH, -EPERM, -EHOSTUNREACH};
  const std::vector<Train> trains = {first.train, second.train, first.train};
  EXPECT_EQ(udp.send(trains), 3u);
  EXPECT_EQ(udp.refusals_to(0).count, 0u);
  EXPECT_EQ(udp.refusals_to(1).count, 2u);
  EXPECT_EQ(udp.refusals_to(1).error, EHOSTUNREACH);
  EXPECT_EQ(udp.refusals_to(2).error, EPERM);
  EXPECT_EQ(udp.last_refusals().to, 1);
  EXPECT_EQ(udp.last_refusals().at.port, 1001);
}

TEST_F(UdpSenderSend, AFullSystemTakesWhatItCan) {
  for (const int full : {-EAGAIN, -ENOBUFS}) {
    kernel_ = {};
    UdpSender udp = sender(true);
    const OwnedTrain train(1, 100, pattern(200));
    const std::vector<Train> trains(3, train.train);
    kernel_.answers = {2, full};
    EXPECT_EQ(udp.send(trains), 2u);
    EXPECT_TRUE(udp.blocked());
    EXPECT_EQ(udp.send(std::span(trains).subspan(2)), 1u);
    EXPECT_FALSE(udp.blocked());
    EXPECT_EQ(kernel_.sent.size(), 3u);
    EXPECT_EQ(counters_.send_errors, 0u);
  }
}

TEST_F(UdpSenderSend, AnErrorLosesOneTrainAndTheRestGoesOn) {
  for (const int error : {-ECONNREFUSED, -EPERM, -ENETUNREACH}) {
    kernel_ = {};
    UdpSender udp = sender(true);
    const OwnedTrain lost(1, 100, pattern(200, 1));
    const OwnedTrain next(1, 100, pattern(200, 2));
    const std::vector<Train> trains = {lost.train, next.train};
    kernel_.answers = {error};
    EXPECT_EQ(udp.send(trains), 2u);
    ASSERT_EQ(kernel_.sent.size(), 1u);
    EXPECT_EQ(kernel_.sent[0].bytes, next.memory);
    EXPECT_EQ(counters_.send_errors, 1u);
    EXPECT_EQ(counters_.datagrams_sent, 2u);
  }
}

TEST_F(UdpSenderSend, ARouteWithoutSegmentationIsServedByDatagramsFromThenOn) {
  for (const int error : {-EIO, -EINVAL, -EMSGSIZE, -EOPNOTSUPP, -ENOPROTOOPT}) {
    kernel_ = {};
    UdpSender udp = sender(true);
    const OwnedTrain train(1, 100, pattern(300));
    const OwnedTrain other(2, 100, pattern(300));
    const std::vector<Train> trains = {train.train, other.train, train.train, other.train};
    kernel_.answers = {error};
    EXPECT_EQ(udp.send(trains), 4u);
    EXPECT_TRUE(udp.is_plain(1));
    EXPECT_FALSE(udp.is_plain(2)) << "another peer's route can";
    ASSERT_EQ(kernel_.sent.size(), 8u);
    for (const std::size_t whole : {3u, 7u}) {
      EXPECT_EQ(kernel_.sent[whole].segment, 100u);
      EXPECT_EQ(kernel_.sent[whole].port, 1002);
    }
    EXPECT_EQ(counters_.send_errors, 0u);
    EXPECT_FALSE(udp.take_refusal());
  }
}

// The error for a train of too long datagrams depends on the system's version, so both are tried.
TEST_F(UdpSenderSend, ATrainOfDatagramsThatAreTooLongSwitchesNothingOff) {
  for (const int error : {-EINVAL, -EMSGSIZE}) {
    kernel_ = {};
    UdpSender udp = sender(true);
    const OwnedTrain longer(1, 100, pattern(250));
    const OwnedTrain next(1, 60, pattern(120));
    const OwnedTrain other(2, 100, pattern(300));
    const std::vector<Train> trains = {longer.train, next.train, other.train};
    kernel_.answers = {error, -EMSGSIZE, -EMSGSIZE};  // the short datagram at the end goes out
    EXPECT_EQ(udp.send(trains), 3u);
    EXPECT_FALSE(udp.is_plain(1));
    ASSERT_EQ(kernel_.sent.size(), 3u);
    EXPECT_EQ(kernel_.sent[1].segment, 60u);
    EXPECT_EQ(kernel_.sent[2].segment, 100u);
    EXPECT_EQ(counters_.send_errors, 2u);
    const auto refusal = udp.take_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->to, 1);
    EXPECT_EQ(refusal->bytes, 100u);
    EXPECT_FALSE(udp.take_refusal()) << "one for a peer";
  }
}

TEST_F(UdpSenderSend, ALoneDatagramThatIsTooLongIsTold) {
  UdpSender udp = sender(true);
  const OwnedTrain train(2, 100, pattern(100));
  kernel_.answers = {-EMSGSIZE};
  EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u);
  const auto refusal = udp.take_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->to, 2);
  EXPECT_EQ(refusal->bytes, 100u);
  EXPECT_EQ(counters_.send_errors, 1u);
}

TEST_F(UdpSenderSend, AnInvalidLoneDatagramDoesNotSwitchSegmentationOff) {
  UdpSender udp = sender(true);
  const OwnedTrain train(1, 100, pattern(100));
  kernel_.answers = {-EINVAL};
  EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u);
  EXPECT_FALSE(udp.is_plain(1));
  EXPECT_EQ(counters_.send_errors, 1u);
}

TEST_F(UdpSenderSend, ATrainTakenInPartIsFinishedBeforeTheNext) {
  UdpSender udp = sender(false);
  Bytes memory = pattern(450);
  const Bytes original = memory;
  const std::vector<Bytes> datagrams = {bytes_of(ByteSpan(original).subspan(0, 100)),
                                        bytes_of(ByteSpan(original).subspan(100, 100)),
                                        bytes_of(ByteSpan(original).subspan(200, 100)),
                                        bytes_of(ByteSpan(original).subspan(300, 100)),
                                        bytes_of(ByteSpan(original).subspan(400, 50))};
  {
    const OwnedTrain train(1, 100, std::move(memory), {30, 250});
    kernel_.answers = {2, -EAGAIN};
    EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u)
        << "part of it is out: the caller must not send it again";
    EXPECT_TRUE(udp.blocked());
  }  // the caller's memory no longer exists
  const OwnedTrain next(1, 100, pattern(40, 9));
  kernel_.answers = {1, -EAGAIN};
  EXPECT_EQ(udp.send(std::span(&next.train, 1)), 0u);
  EXPECT_TRUE(udp.blocked());
  EXPECT_EQ(udp.send(std::span(&next.train, 1)), 1u);
  ASSERT_EQ(kernel_.sent.size(), 6u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(kernel_.sent[i].bytes, datagrams[i]);
  EXPECT_EQ(kernel_.sent[5].bytes, next.memory);
  EXPECT_EQ(counters_.datagrams_sent, 6u);
  EXPECT_EQ(counters_.bytes_sent, 490u);
}

TEST_F(UdpSenderSend, FlushFinishesATrainWithoutAnotherSend) {
  UdpSender udp = sender(false);
  const OwnedTrain train(1, 100, pattern(300));
  kernel_.answers = {1, -EAGAIN, -EAGAIN};
  EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u);
  EXPECT_FALSE(udp.flush());
  EXPECT_TRUE(udp.flush());
  EXPECT_FALSE(udp.blocked());
  EXPECT_EQ(kernel_.sent.size(), 3u);
}

TEST_F(UdpSenderSend, AnErrorWithoutSegmentationLosesOneDatagram) {
  UdpSender udp = sender(false);
  const OwnedTrain train(1, 100, pattern(300));
  kernel_.answers = {1, -EMSGSIZE};
  EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u);
  ASSERT_EQ(kernel_.sent.size(), 2u);
  EXPECT_EQ(kernel_.sent[1].bytes, bytes_of(train.datagram(2)));
  EXPECT_EQ(counters_.send_errors, 1u);
}

TEST_F(UdpSenderSend, AnInterruptedCallIsRepeated) {
  UdpSender udp = sender(true);
  const OwnedTrain train(1, 100, pattern(300));
  kernel_.answers = {-EINTR};
  EXPECT_EQ(udp.send(std::span(&train.train, 1)), 1u);
  EXPECT_EQ(kernel_.sent.size(), 1u);
}

}  // namespace
}  // namespace leeway::transport
