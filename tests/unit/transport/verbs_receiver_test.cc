#include "transport/verbs/receiver.h"

#include <gtest/gtest.h>

#include <memory>

#include "unit/transport/fake_verbs.h"

namespace leeway::transport {
namespace {

constexpr std::size_t kMtu = 1024;
constexpr std::size_t kDatagram = 1000;
constexpr std::size_t kEntries = 300;

// The receiver of rank 0 at 10.0.0.1. Ranks 1 and 2 are at .2 and .3.
class VerbsReceiverReceive : public testing::Test {
 protected:
  VerbsReceiverReceive() : slots_(kEntries * VerbsReceiver::slot_bytes(kMtu)) {
    const std::vector ranks = {roce_address(1), roce_address(2), roce_address(3)};
    EXPECT_TRUE(peers_.assign(ranks, ranks[0]).ok());
    receiver_ = std::make_unique<VerbsReceiver>(
        VerbsReceiver::Setup{&fake_.queue_pair, &fake_.completions, kEntries, kMtu, kDatagram,
                             slots_.data(), 5},
        peers_, counters_);
    EXPECT_EQ(receiver_->start(), 0);
    fake_.posted_slots.clear();
  }
  // Delivers a datagram from 10.0.0.`host` in slot `slot` as a device does.
  void arrive(std::uint64_t slot, ByteSpan payload, unsigned host = 2,
              std::uint32_t queue_pair = 100) {
    auto* at = reinterpret_cast<std::byte*>(fake_.slots[slot].addr);
    const Bytes header = ipv4_header(host);
    std::ranges::copy(header, at);
    std::ranges::copy(payload, at + header.size());
    ibv_wc completion{};
    completion.wr_id = slot;
    completion.byte_len = static_cast<std::uint32_t>(header.size() + payload.size());
    completion.src_qp = queue_pair;
    completion.wc_flags = IBV_WC_GRH;
    fake_.done.push_back(completion);
  }
  std::vector<Received> receive(std::size_t room = 64) {
    std::vector<Received> out(room);
    out.resize(receiver_->receive(out));
    return out;
  }

  FakeVerbs fake_;
  TransportCounters counters_;
  VerbsPeers peers_;
  Bytes slots_;
  std::unique_ptr<VerbsReceiver> receiver_;
};

TEST_F(VerbsReceiverReceive, StartsWithEverySlotPostedOnceAndApart) {
  EXPECT_EQ(fake_.receive_posts, 1);
  ASSERT_EQ(fake_.slots.size(), kEntries);
  for (std::size_t i = 0; i < kEntries; ++i) {
    EXPECT_EQ(fake_.slots[i].addr, reinterpret_cast<std::uintptr_t>(slots_.data()) +
                                       i * VerbsReceiver::slot_bytes(kMtu));
    EXPECT_EQ(fake_.slots[i].length, kNetworkHeaderBytes + kMtu);
    EXPECT_EQ(fake_.slots[i].lkey, 5u);
  }
  EXPECT_GE(VerbsReceiver::slot_bytes(kMtu), kNetworkHeaderBytes + kMtu);
}

TEST_F(VerbsReceiverReceive, ShowsDatagramsInPlaceWithTheirSender) {
  const Bytes first = pattern(kDatagram), second = pattern(0), third = pattern(17, 3);
  arrive(4, first, 2);
  arrive(0, second, 3);
  arrive(1, third, 3);
  const auto got = receive();
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].from, 1u);
  EXPECT_EQ(got[1].from, 2u);
  EXPECT_EQ(bytes_of(got[0].bytes), first);
  EXPECT_EQ(bytes_of(got[1].bytes), second);
  EXPECT_EQ(bytes_of(got[2].bytes), third);
  EXPECT_EQ(counters_.datagrams_received, 3u);
  EXPECT_EQ(counters_.bytes_received, kDatagram + 17);
}

TEST_F(VerbsReceiverReceive, PostsSlotsAgainAtTheNextCallAndNotBefore) {
  for (const std::uint64_t slot : {9, 3, 7}) arrive(slot, pattern(100));
  EXPECT_EQ(receive(2).size(), 2u);
  EXPECT_TRUE(fake_.posted_slots.empty());
  EXPECT_TRUE(receiver_->pending());
  EXPECT_EQ(receive(2).size(), 1u);
  EXPECT_EQ(fake_.posted_slots, (std::vector<std::uint64_t>{9, 3}));
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(fake_.posted_slots, (std::vector<std::uint64_t>{9, 3, 7}));
  EXPECT_FALSE(receiver_->pending());
}

TEST_F(VerbsReceiverReceive, KeepsWhatPendingFound) {
  arrive(0, pattern(10));
  EXPECT_TRUE(receiver_->pending());
  EXPECT_EQ(receive().size(), 1u);
}

TEST_F(VerbsReceiverReceive, NeverRunsOutOfSlotsHoweverLongItGoesOn) {
  std::uint64_t slot = 0;
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < 10; ++i) arrive(slot++ % kEntries, pattern(20), i % 3 == 0 ? 9 : 2);
    ASSERT_EQ(receive().size(), 6u);
  }
  receive();
  EXPECT_EQ(fake_.posted_slots.size(), 10000u);
}

TEST_F(VerbsReceiverReceive, CountsAndHidesStrangersLargeOnesAndBrokenOnes) {
  arrive(0, pattern(10), 9);
  arrive(1, pattern(10), 2, 101);
  arrive(2, pattern(kDatagram + 1));
  arrive(3, {});
  fake_.done.back().byte_len = kNetworkHeaderBytes - 1;
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(counters_.from_strangers, 3u);
  EXPECT_EQ(counters_.oversized, 1u);
  EXPECT_EQ(counters_.datagrams_received, 0u);
  EXPECT_EQ(fake_.posted_slots.size(), 4u);
}

TEST_F(VerbsReceiverReceive, DropsItsOwnMulticastSilently) {
  arrive(0, pattern(10), 1);
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(counters_.from_strangers, 0u);
}

TEST_F(VerbsReceiverReceive, LooksThroughAFloodOfStrangersOnlySoFar) {
  for (std::uint64_t slot = 0; slot < kEntries; ++slot) arrive(slot, pattern(10), 9);
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(counters_.from_strangers, 256u);
}

TEST_F(VerbsReceiverReceive, IgnoresCompletionsOfSlotsThatAreNotThere) {
  arrive(0, pattern(10));
  fake_.done.back().wr_id = kEntries;
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(receiver_->failure(), nullptr);
}

TEST_F(VerbsReceiverReceive, SaysWhyTheQueuePairIsOfNoUse) {
  arrive(0, pattern(10));
  fake_.done.back().status = IBV_WC_WR_FLUSH_ERR;
  EXPECT_TRUE(receive().empty());
  EXPECT_STREQ(receiver_->failure(), ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR));
}

TEST_F(VerbsReceiverReceive, HearsWhenCompletionsCannotBeReadOrSlotsNotPosted) {
  arrive(0, pattern(10));
  EXPECT_EQ(receive().size(), 1u);
  fake_.broken = true;
  receive();
  EXPECT_NE(receiver_->failure(), nullptr);
}

TEST_F(VerbsReceiverReceive, ShowsNothingOnceAbandoned) {
  arrive(0, pattern(10));
  receiver_->abandon();
  EXPECT_FALSE(receiver_->pending());
  EXPECT_TRUE(receive().empty());
}

}  // namespace
}  // namespace leeway::transport
