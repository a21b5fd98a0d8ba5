#include "protocol/round_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "no_client.h"

namespace leeway::protocol {
namespace {

class Table : public ::testing::Test {
 protected:
  Round* collective() {
    RoundPlan& plan = plans_.emplace_back();
    plan.phase(FlowKind::reduce).active = true;
    return table_.open(plan, client_, now_);
  }
  Round* message(Rank peer, bool send, Instant deadline = {}, std::uint32_t tag = 0) {
    RoundPlan& plan = plans_.emplace_back();
    plan.phase(FlowKind::point).active = true;
    plan.point_peer = peer;
    plan.point_send = send;
    plan.deadline = deadline;
    plan.message_tag = tag;
    return table_.open(plan, client_, now_);
  }
  void end(Round& round) {
    table_.end(round);
    table_.take_ended();
  }
  std::vector<Round*> with(Rank peer) const {
    const auto rounds = table_.with(peer);
    return {rounds.begin(), rounds.end()};
  }

  Instant now_{1000};
  NoClient client_;
  std::deque<RoundPlan> plans_;  // the plans live as long as their rounds
  RoundTable table_{4};
};

TEST_F(Table, CollectivesAreLimitedAndMessagesAreNot) {
  for (int i = 0; i < limits::kOpenCollectivesMax; ++i) EXPECT_NE(collective(), nullptr);
  EXPECT_EQ(collective(), nullptr);
  for (int i = 0; i < 1000; ++i) EXPECT_NE(message(1, i % 2 == 0), nullptr);
  EXPECT_EQ(table_.open_count(), std::size_t{limits::kOpenCollectivesMax} + 1000);
}

TEST_F(Table, NumbersCountByPeerAndDirection) {
  EXPECT_EQ(collective()->number, 0u);
  EXPECT_EQ(message(1, true)->number, 0u);
  EXPECT_EQ(message(1, false)->number, 0u);
  EXPECT_EQ(message(1, false)->number, 1u);
  EXPECT_EQ(message(2, true)->number, 0u);
  EXPECT_EQ(collective()->number, 1u);
  EXPECT_EQ(table_.opened_below(), 2u);
  EXPECT_EQ(table_.receives_opened(1, 0), 2u);
  EXPECT_EQ(table_.next_message(1, 0, true), 1u);
  EXPECT_EQ(table_.next_message(3, 0, true), 0u);
}

TEST_F(Table, FindsWhatIsMeant) {
  Round* const reduction = collective();
  Round* const sent = message(1, true);
  Round* const received = message(1, false);
  EXPECT_EQ(table_.find(FlowKind::reduce, 0, 0, 3, false), reduction);
  EXPECT_EQ(table_.find(FlowKind::spread, 0, 0, 3, false), nullptr) << "it has no such half";
  EXPECT_EQ(table_.find(FlowKind::reduce, 1, 0, 3, false), nullptr);
  EXPECT_EQ(table_.find(FlowKind::point, 0, 0, 1, true), sent);
  EXPECT_EQ(table_.find(FlowKind::point, 0, 0, 1, false), received);
  EXPECT_EQ(table_.find(FlowKind::point, 0, 0, 2, false), nullptr);
}

TEST_F(Table, WithAPeerAreCollectivesAndItsMessagesOldestFirst) {
  Round* const a = message(1, false);
  Round* const b = collective();
  Round* const c = message(1, true);
  message(2, true);
  Round* const d = message(1, false);
  Round* const e = collective();
  EXPECT_EQ(with(1), (std::vector<Round*>{a, b, c, d, e}));
  EXPECT_EQ(with(3), (std::vector<Round*>{b, e}));
}

TEST_F(Table, WhatEndedStaysUntilItIsTakenOut) {
  Round* const first = collective();
  Round* const second = collective();
  table_.end(*first);
  EXPECT_EQ(table_.find(FlowKind::reduce, 0, 0, 1, false), nullptr);
  EXPECT_EQ(table_.collectives().size(), 2u);
  ASSERT_TRUE(table_.any_ended());
  EXPECT_EQ(table_.take_ended(), &client_);
  EXPECT_FALSE(table_.any_ended());
  ASSERT_EQ(table_.collectives().size(), 1u);
  EXPECT_EQ(table_.collectives()[0], second);
}

TEST_F(Table, TheNextMessageTalksWhenOneEnds) {
  std::vector<Round*> messages;
  for (int i = 0; i < limits::kTalkingMessagesMax + 2; ++i) messages.push_back(message(1, false));
  EXPECT_EQ(with(1).size(), std::size_t{limits::kTalkingMessagesMax});
  while (table_.take_starting() != nullptr) continue;
  end(*messages[3]);
  EXPECT_EQ(table_.take_starting(), messages[limits::kTalkingMessagesMax]);
  EXPECT_EQ(with(1).back(), messages[limits::kTalkingMessagesMax]);
  end(*messages.back());
  EXPECT_EQ(table_.take_starting(), nullptr) << "it did not talk";
}

TEST_F(Table, TheOldestTagsHaveATurn) {
  std::vector<Round*> messages;
  for (std::size_t i = 0; i < limits::kTalkingTagsMax + 3; ++i)
    messages.push_back(message(1, true, {}, static_cast<std::uint32_t>(i + 1)));
  EXPECT_EQ(with(1).size(), limits::kTalkingTagsMax);
  Round* const zero = message(1, true);
  EXPECT_EQ(with(1).back(), zero) << "tag 0 always has a turn";
  Round* const received = message(1, false, {}, 5);
  EXPECT_EQ(with(1).back(), received) << "the directions have turns apart";
  while (table_.take_starting() != nullptr) continue;
  end(*messages[limits::kTalkingTagsMax]);  // it waited
  EXPECT_EQ(table_.take_starting(), nullptr);
  end(*messages[7]);
  EXPECT_EQ(table_.take_starting(), messages[limits::kTalkingTagsMax + 1]);
  EXPECT_EQ(table_.take_starting(), nullptr);
}

TEST_F(Table, WhatThePeerMentionsTalks) {
  std::vector<Round*> messages;
  for (std::size_t i = 0; i < limits::kTalkingTagsMax + 100; ++i)
    messages.push_back(message(1, false, {}, static_cast<std::uint32_t>(i + 1)));
  for (std::size_t i = limits::kTalkingTagsMax; i < messages.size(); ++i)
    table_.messages(1)->mention(*messages[i]);
  const std::size_t most = limits::kTalkingTagsMax + limits::kMentionedReceivesMax;
  EXPECT_EQ(with(1).size(), most);
  EXPECT_TRUE(std::ranges::is_sorted(with(1), {}, &Round::opening));
  end(*messages[limits::kTalkingTagsMax]);
  EXPECT_EQ(with(1).size(), most - 1);
  table_.messages(1)->mention(*messages.back());
  EXPECT_EQ(with(1).size(), most);
}

TEST_F(Table, ASendWhoseReceiveIsPostedTalks) {
  for (std::uint32_t tag = 1; tag <= limits::kTalkingTagsMax; ++tag) message(1, true, {}, tag);
  constexpr std::uint32_t kLate = 1000;
  std::vector<Round*> late;
  for (int i = 0; i < 20; ++i) late.push_back(message(1, true, {}, kLate));
  PeerMessages& messages = *table_.messages(1);
  EXPECT_TRUE(messages.mention_sends(*messages.find(kLate), 3));
  EXPECT_FALSE(messages.mention_sends(*messages.find(kLate), 2)) << "it is older";
  EXPECT_TRUE(late[2]->talks && !late[3]->talks);
  EXPECT_TRUE(messages.mention_sends(*messages.find(kLate), 20));
  EXPECT_TRUE(late[15]->talks && !late[16]->talks);
  end(*late[0]);
  EXPECT_TRUE(late[16]->talks);
}

TEST_F(Table, SettledBelowIsTheOldestCollectiveThatStillWantsSomething) {
  Round* const first = collective();
  collective();
  table_.refresh_settled_below();
  EXPECT_EQ(table_.settled_below(), 0u);
  first->phase(FlowKind::reduce).settled = true;
  table_.refresh_settled_below();
  EXPECT_EQ(table_.settled_below(), 1u);
  table_.end(*first);
  EXPECT_FALSE(table_.may_have_given_up(0)) << "all had confirmed it";
}

TEST_F(Table, RemembersWhatItClosedBeforeAllHadConfirmed) {
  Round* const given_up = collective();
  given_up->phase(FlowKind::reduce).sends_open = 1;
  table_.end(*given_up);
  EXPECT_TRUE(table_.may_have_given_up(0));
  EXPECT_FALSE(table_.may_have_given_up(1));
}

TEST_F(Table, MemoryServesAgain) {
  Round* const first = message(1, true);
  table_.end(*first);
  table_.take_ended();
  EXPECT_EQ(message(2, false), first);
}

}  // namespace
}  // namespace leeway::protocol
