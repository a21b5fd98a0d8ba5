// A script replaces the system call, so that tests can make coalesced messages of any shape.
#include "transport/udp/receiver.h"

#include <gtest/gtest.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

struct ArrivingMessage {
  Bytes bytes;
  int port = 1001;
  int segment = 0;  // if 0, the kernel gives no segment size
};

std::deque<std::vector<ArrivingMessage>>* batches = nullptr;

void write_note(msghdr& header, int segment) {
  cmsghdr* note = CMSG_FIRSTHDR(&header);
  note->cmsg_level = SOL_UDP;
  note->cmsg_type = UDP_GRO;
  note->cmsg_len = CMSG_LEN(sizeof(segment));
  std::memcpy(CMSG_DATA(note), &segment, sizeof(segment));
}

void fill(mmsghdr& slot, const ArrivingMessage& message) {
  const iovec& piece = slot.msg_hdr.msg_iov[0];
  const std::size_t taken = std::min(piece.iov_len, message.bytes.size());
  std::copy_n(message.bytes.data(), taken, static_cast<std::byte*>(piece.iov_base));
  slot.msg_len = static_cast<unsigned>(taken);
  slot.msg_hdr.msg_flags = taken < message.bytes.size() ? MSG_TRUNC : 0;
  const UdpAddress from(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(message.port));
  EXPECT_GE(slot.msg_hdr.msg_namelen, from.size())
      << "the kernel shrinks it, the receiver must restore it";
  std::memcpy(slot.msg_hdr.msg_name, from.data(), from.size());
  slot.msg_hdr.msg_namelen = static_cast<socklen_t>(from.size());
  if (message.segment > 0) {
    write_note(slot.msg_hdr, message.segment);
  } else {
    slot.msg_hdr.msg_controllen = 0;
  }
}

int scripted_recvmmsg(int, mmsghdr* messages, unsigned count, int, timespec*) {
  if (batches->empty()) {
    errno = EAGAIN;
    return -1;
  }
  const std::vector<ArrivingMessage> batch = std::move(batches->front());
  batches->pop_front();
  EXPECT_LE(batch.size(), count);
  for (std::size_t i = 0; i < batch.size(); ++i) fill(messages[i], batch[i]);
  return static_cast<int>(batch.size());
}

class UdpReceiverReceive : public testing::Test {
 protected:
  UdpReceiverReceive() {
    batches = &batches_;
    const std::vector<UdpAddress> addresses = {{asio::ip::address_v4::loopback(), 1000},
                                               {asio::ip::address_v4::loopback(), 1001}};
    EXPECT_TRUE(peers_.assign(addresses).ok());
  }
  ~UdpReceiverReceive() override { batches = nullptr; }

  UdpReceiver receiver(bool coalescing) {
    counters_ = {};
    return UdpReceiver(-1, coalescing, 1472, peers_, counters_, &scripted_recvmmsg);
  }

  std::deque<std::vector<ArrivingMessage>> batches_;
  PeerTable peers_;
  TransportCounters counters_;  // of the latest receiver()
  std::vector<Received> out_ = std::vector<Received>(64);
};

TEST_F(UdpReceiverReceive, ACoalescedMessageIsCutAtItsSegments) {
  UdpReceiver udp = receiver(true);
  const Bytes super = pattern(3 * 500 + 123);
  batches_ = {{{super, 1001, 500}}};
  ASSERT_EQ(udp.receive(out_), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(bytes_of(out_[i].bytes),
              bytes_of(ByteSpan(super).subspan(i * 500, i < 3 ? 500 : 123)));
    EXPECT_EQ(out_[i].from, 1);
  }
  EXPECT_EQ(counters_.datagrams_received, 4u);
  EXPECT_EQ(counters_.bytes_received, super.size());
  EXPECT_EQ(udp.receive(out_), 0u);
}

TEST_F(UdpReceiverReceive, AMessageOfWholeSegmentsHasNoEmptyTail) {
  UdpReceiver udp = receiver(true);
  batches_ = {{{pattern(1500), 1001, 500}}};
  EXPECT_EQ(udp.receive(out_), 3u);
}

TEST_F(UdpReceiverReceive, AMessageWithoutANoteIsOneDatagram) {
  UdpReceiver udp = receiver(true);
  batches_ = {{{pattern(700), 1000, 0}, {pattern(20), 1001, 0}}};
  ASSERT_EQ(udp.receive(out_), 2u);
  EXPECT_EQ(out_[0].bytes.size(), 700u);
  EXPECT_EQ(out_[0].from, 0);
  EXPECT_EQ(out_[1].bytes.size(), 20u);
}

TEST_F(UdpReceiverReceive, WhatDoesNotFitIntoTheCallersArrayComesWithTheNextCalls) {
  UdpReceiver udp = receiver(true);
  const Bytes super = pattern(10 * 100);
  batches_ = {{{super, 1001, 100}, {pattern(50, 7), 1000, 0}}};
  std::vector<Received> small(4);
  std::vector<Bytes> all;
  std::size_t filled = 0;
  while ((filled = udp.receive(small)) > 0) {
    for (std::size_t i = 0; i < filled; ++i) all.push_back(bytes_of(small[i].bytes));
    EXPECT_EQ(udp.pending(), all.size() < 11);
  }
  ASSERT_EQ(all.size(), 11u);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_EQ(all[i], bytes_of(ByteSpan(super).subspan(i * 100, 100)));
  EXPECT_EQ(all[10], pattern(50, 7));
}

TEST_F(UdpReceiverReceive, LentBytesOutliveNewArrivalsUntilTheNextCall) {
  UdpReceiver udp = receiver(true);
  batches_ = {{{pattern(100, 1), 1001, 0}}, {{pattern(100, 2), 1001, 0}}};
  ASSERT_EQ(udp.receive(out_), 1u) << "one batch a call: a second would overwrite the first";
  EXPECT_EQ(bytes_of(out_[0].bytes), pattern(100, 1));
  ASSERT_EQ(udp.receive(out_), 1u);
  EXPECT_EQ(bytes_of(out_[0].bytes), pattern(100, 2));
}

TEST_F(UdpReceiverReceive, StrangersAreCountedAndNeverShown) {
  UdpReceiver udp = receiver(true);
  batches_ = {{{pattern(1000), 6666, 100}, {pattern(50), 1001, 0}}};
  ASSERT_EQ(udp.receive(out_), 1u);
  EXPECT_EQ(out_[0].bytes.size(), 50u);
  EXPECT_EQ(counters_.from_strangers, 10u);
  EXPECT_EQ(counters_.datagrams_received, 1u);
  EXPECT_EQ(network_address(udp.last_stranger()).port, 6666);
}

TEST_F(UdpReceiverReceive, AFloodOfStrangersDoesNotHoldTheCaller) {
  UdpReceiver udp = receiver(true);
  for (int i = 0; i < 100; ++i) batches_.push_back({{pattern(100), 6666, 0}});
  EXPECT_EQ(udp.receive(out_), 0u);
  EXPECT_GT(batches_.size(), 90u);
}

TEST_F(UdpReceiverReceive, DatagramsBeyondTheLimitAreCountedInBothModes) {
  for (const bool coalescing : {false, true}) {
    UdpReceiver udp = receiver(coalescing);
    batches_ = {{{pattern(1473), 1001, 0}, {pattern(1472), 1001, 0}}};
    ASSERT_EQ(udp.receive(out_), 1u);
    EXPECT_EQ(bytes_of(out_[0].bytes), pattern(1472));
    EXPECT_EQ(counters_.oversized, 1u);
  }
}

TEST_F(UdpReceiverReceive, AnEmptyDatagramIsHandedOn) {
  UdpReceiver udp = receiver(true);
  batches_ = {{{{}, 1001, 0}, {pattern(10), 1001, 0}}};
  ASSERT_EQ(udp.receive(out_), 2u);
  EXPECT_EQ(out_[0].bytes.size(), 0u);
  EXPECT_EQ(out_[1].bytes.size(), 10u);
}

TEST_F(UdpReceiverReceive, NoRoomMeansNoSystemCall) {
  UdpReceiver udp = receiver(true);
  EXPECT_EQ(udp.receive({}), 0u);
  EXPECT_EQ(counters_.receive_calls, 0u);
}

}  // namespace
}  // namespace leeway::transport
