#include "transport/verbs/sender.h"

#include <gtest/gtest.h>

#include <memory>

#include "unit/transport/fake_verbs.h"

namespace leeway::transport {
namespace {

constexpr std::size_t kSentBytes = 1024;
constexpr std::uint32_t kSlotsKey = 99;

// The sender of rank 0 of three. Registered memory has the key 7.
class VerbsSenderSend : public testing::Test {
 protected:
  explicit VerbsSenderSend(QueueSizes sizes = {256, 256, 3, 128}) : slots_(256 * kSentBytes) {
    sender_ = std::make_unique<VerbsSender>(
        VerbsSender::Setup{&fake_.queue_pair, &fake_.completions, sizes, kSentBytes, slots_.data(),
                           kSlotsKey},
        regions_, counters_);
    sender_->set_destinations({{}, {route(1), 101, 11}, {route(2), 102, 12}});
    sender_->set_group({route(3), kMulticastQueuePair, 13});
  }
  static ibv_ah* route(std::uintptr_t number) { return reinterpret_cast<ibv_ah*>(number * 8); }
  std::size_t send(std::initializer_list<const OwnedTrain*> trains) {
    std::vector<Train> list;
    for (const OwnedTrain* train : trains) list.push_back(train->train);
    return sender_->send(list);
  }
  void expect_sent(const OwnedTrain& train, std::size_t first = 0) {
    ASSERT_GE(fake_.sent.size(), first + train.datagrams());
    for (std::size_t i = 0; i < train.datagrams(); ++i) {
      EXPECT_EQ(fake_.sent[first + i].bytes, bytes_of(train.datagram(i))) << i;
    }
  }
  bool from_slots(const FakeVerbs::Sent& datagram) const {
    return datagram.pieces.size() == 1 && datagram.pieces[0].lkey == kSlotsKey;
  }

  FakeVerbs fake_;
  TransportCounters counters_;
  ibv_mr region_{.lkey = 7};
  Regions regions_{{[this](ByteSpan) { return &region_; }, [](ibv_mr*) {}}};
  Bytes slots_;
  std::unique_ptr<VerbsSender> sender_;
};

TEST_F(VerbsSenderSend, CutsTrainsAtDatagramBordersAndPostsThemTogether) {
  const OwnedTrain first(1, kSentBytes, pattern(5 * kSentBytes + 200),
                         {48, 1000, 2 * kSentBytes, 2 * kSentBytes + 48});
  const OwnedTrain second(2, 600, pattern(600, 9));
  ASSERT_EQ(send({&first, &second}), 2u);
  EXPECT_EQ(fake_.send_posts, 1);
  ASSERT_EQ(fake_.sent.size(), 7u);
  expect_sent(first);
  expect_sent(second, 6);
  EXPECT_EQ(fake_.sent[0].route, route(1));
  EXPECT_EQ(fake_.sent[0].queue_pair, 101u);
  EXPECT_EQ(fake_.sent[0].queue_key, 11u);
  EXPECT_EQ(fake_.sent[6].route, route(2));
  EXPECT_EQ(counters_.datagrams_sent, 7u);
  EXPECT_EQ(counters_.bytes_sent, 5 * kSentBytes + 800);
}

TEST_F(VerbsSenderSend, GathersRegisteredMemoryInPlaceAndSaysThatItIsBorrowed) {
  const OwnedTrain train(1, kSentBytes, pattern(3 * kSentBytes), {48, kSentBytes + 48});
  regions_.add(train.memory);
  ASSERT_EQ(send({&train}), 1u);
  expect_sent(train);
  EXPECT_EQ(fake_.sent[0].pieces.size(), 2u);
  for (const auto& datagram : fake_.sent) {
    for (const ibv_sge& piece : datagram.pieces) EXPECT_EQ(piece.lkey, 7u);
  }
  EXPECT_EQ(fake_.sent[0].flags, 0u);
  EXPECT_EQ(fake_.sent[2].flags, unsigned{IBV_SEND_SIGNALED});
  EXPECT_EQ(counters_.datagrams_copied, 0u);
  EXPECT_EQ(sender_->borrowed(), 1u);
  fake_.complete(3);
  EXPECT_EQ(sender_->borrowed(), 0u);
}

TEST_F(VerbsSenderSend, CopiesWhatLiesElsewhereOrInTooManyPieces) {
  const OwnedTrain elsewhere(1, kSentBytes, pattern(2 * kSentBytes), {48});
  OwnedTrain pieces(1, kSentBytes, pattern(kSentBytes, 5), {10, 20, 30});
  OwnedTrain half(1, kSentBytes, pattern(kSentBytes, 6), {48});
  regions_.add(pieces.memory);
  regions_.add(ByteSpan(half.memory).first(48));
  ASSERT_EQ(send({&elsewhere, &pieces, &half}), 3u);
  for (const auto& datagram : fake_.sent) EXPECT_TRUE(from_slots(datagram));
  expect_sent(elsewhere);
  expect_sent(pieces, 2);
  expect_sent(half, 3);
  EXPECT_EQ(counters_.datagrams_copied, 4u);
  EXPECT_EQ(sender_->borrowed(), 0u);
}

TEST_F(VerbsSenderSend, CopiesEachDatagramToASlotOfItsOwn) {
  const OwnedTrain train(1, kSentBytes, pattern(64 * kSentBytes));
  for (int i = 0; i < 4; ++i) ASSERT_EQ(send({&train}), 1u);
  std::vector<std::uint64_t> places;
  for (const auto& datagram : fake_.sent) places.push_back(datagram.pieces[0].addr);
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i) EXPECT_EQ(places[i] - places[i - 1], kSentBytes);
  EXPECT_EQ(places.front(), reinterpret_cast<std::uintptr_t>(slots_.data()));
}

TEST_F(VerbsSenderSend, PutsSmallDatagramsInlineAndBorrowsNothingForThem) {
  const OwnedTrain small(1, 128, pattern(128), {48});
  const OwnedTrain large(1, 129, pattern(129), {48});
  regions_.add(small.memory);
  ASSERT_EQ(send({&small, &large}), 2u);
  EXPECT_EQ(fake_.sent[0].flags, unsigned{IBV_SEND_INLINE});
  EXPECT_TRUE(from_slots(fake_.sent[1]));
  expect_sent(small);
  EXPECT_EQ(sender_->borrowed(), 0u);
}

TEST_F(VerbsSenderSend, TakesWholeTrainsWhileTheQueueHasRoomAndMoreOnceItIsFree) {
  const OwnedTrain train(1, kSentBytes, pattern(60 * kSentBytes));
  ASSERT_EQ(send({&train, &train, &train, &train, &train}), 4u);  // 240 of 256 entries are taken
  EXPECT_TRUE(sender_->waits());
  EXPECT_EQ(send({&train}), 0u);
  fake_.complete(240);
  EXPECT_TRUE(sender_->collect());
  EXPECT_FALSE(sender_->collect());
  EXPECT_EQ(send({&train}), 1u);
  EXPECT_FALSE(sender_->waits());
  EXPECT_EQ(fake_.sent.size(), 300u);
}

TEST_F(VerbsSenderSend, AlwaysAsksForACompletionOfTheLastDatagramPosted) {
  const OwnedTrain small(1, 64, pattern(64));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(send({&small, &small}), 2u) << i;
    EXPECT_NE(fake_.sent.back().flags & IBV_SEND_SIGNALED, 0u);
    EXPECT_EQ(fake_.sent[fake_.sent.size() - 2].flags & IBV_SEND_SIGNALED, 0u);
    fake_.complete(fake_.sent.back().number);
  }
}

TEST_F(VerbsSenderSend, CountsTheLatestTrainsAsBorrowedFromTheOldestThatIsRead) {
  const OwnedTrain read(1, kSentBytes, pattern(2 * kSentBytes));
  const OwnedTrain copied(1, kSentBytes, pattern(kSentBytes));
  regions_.add(read.memory);
  ASSERT_EQ(send({&copied, &read, &copied, &read, &copied}), 5u);
  EXPECT_EQ(sender_->borrowed(), 4u);
  fake_.complete(3);
  EXPECT_EQ(sender_->borrowed(), 2u);
  fake_.complete(6);
  EXPECT_EQ(sender_->borrowed(), 0u);
}

TEST_F(VerbsSenderSend, SendsToTheGroupOnce) {
  const OwnedTrain train(kEveryRank, kSentBytes, pattern(2 * kSentBytes));
  ASSERT_EQ(send({&train}), 1u);
  ASSERT_EQ(fake_.sent.size(), 2u);
  EXPECT_EQ(fake_.sent[0].route, route(3));
  EXPECT_EQ(fake_.sent[0].queue_pair, kMulticastQueuePair);
  EXPECT_EQ(fake_.sent[0].queue_key, 13u);
}

TEST_F(VerbsSenderSend, SaysWhyTheQueuePairIsOfNoUse) {
  const OwnedTrain train(1, kSentBytes, pattern(kSentBytes));
  fake_.broken = true;
  EXPECT_EQ(send({&train}), 1u);
  EXPECT_NE(sender_->failure(), nullptr);
  EXPECT_EQ(counters_.send_errors, 1u);
  EXPECT_EQ(counters_.datagrams_sent, 0u);
}

TEST_F(VerbsSenderSend, HearsOfFailedCompletions) {
  const OwnedTrain train(1, kSentBytes, pattern(kSentBytes));
  ASSERT_EQ(send({&train}), 1u);
  fake_.complete(1, IBV_WC_WR_FLUSH_ERR);
  sender_->collect();
  EXPECT_STREQ(sender_->failure(), ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR));
}

TEST_F(VerbsSenderSend, HearsWhenCompletionsCannotBeRead) {
  fake_.deaf = true;
  EXPECT_FALSE(sender_->collect());
  EXPECT_NE(sender_->failure(), nullptr);
}

TEST_F(VerbsSenderSend, TakesAndDropsEverythingOnceAbandoned) {
  const OwnedTrain train(1, kSentBytes, pattern(kSentBytes));
  regions_.add(train.memory);
  ASSERT_EQ(send({&train}), 1u);
  EXPECT_EQ(sender_->borrowed(), 1u);
  sender_->abandon();
  EXPECT_EQ(sender_->borrowed(), 0u);
  EXPECT_FALSE(sender_->waits());
  EXPECT_EQ(send({&train, &train}), 2u);
  EXPECT_EQ(fake_.sent.size(), 1u);
  EXPECT_EQ(counters_.send_errors, 2u);
}

TEST_F(VerbsSenderSend, DrainsUntilEverythingIsOutOrTimeIsUp) {
  const OwnedTrain train(1, kSentBytes, pattern(kSentBytes));
  ASSERT_EQ(send({&train}), 1u);
  sender_->drain(std::chrono::milliseconds(1));
  fake_.complete(1);
  const auto start = std::chrono::steady_clock::now();
  sender_->drain(std::chrono::seconds(60));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace
}  // namespace leeway::transport
