#include "run/message_plan.h"

#include <gtest/gtest.h>

#include <map>

#include "unit/sim_run/record_of.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;

TEST(MessagePlan, ATagReceivedFromAnyRankServesOneRound) {
  const auto scenario = scenario_of(
      "ranks: 5 operation { kind: messages bytes: 64 messages_max: 20 tags: 3 any_source: true }");
  const MessagePlan plan(scenario, 1, {});
  for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
    std::map<std::uint32_t, std::uint32_t> round_of;
    for (std::uint32_t round = 0; round < 4; ++round) {
      RankMemory memory;
      plan.prepare(rank, round, memory);
      for (const auto& spec : memory.messages) {
        if (spec.kind != OperationKind::recv || spec.peer != kAnyRank) continue;
        const auto known = round_of.emplace(spec.options.tag, round).first;
        EXPECT_EQ(known->second, round) << "tag " << spec.options.tag << " of rank " << rank;
      }
    }
    EXPECT_FALSE(round_of.empty());
  }
}

TEST(MessagePlan, BothSidesMeanTheSameMessages) {
  const auto scenario = scenario_of(
      "ranks: 4 operation { kind: messages bytes: 64 messages_max: 20 tags: 3 any_source: true }");
  const MessagePlan plan(scenario, 1, {});
  for (std::uint32_t round = 0; round < 3; ++round) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> owed;  // by receiver and tag
    for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
      RankMemory memory;
      plan.prepare(rank, round, memory);
      for (const auto& spec : memory.messages) {
        const bool sends = spec.kind == OperationKind::send;
        owed[{sends ? spec.peer : rank, spec.options.tag}] += sends ? 1 : -1;
      }
    }
    for (const auto& [which, count] : owed)
      EXPECT_EQ(count, 0) << "rank " << which.first << ", tag " << which.second;
  }
}

TEST(MessagePlan, AnExchangeHoldsMessagesForTheRankItselfInPairs) {
  const auto scenario = scenario_of(
      "ranks: 4 operation { kind: messages bytes: 64 tags: 3 any_source: true exchange: true }");
  const MessagePlan plan(scenario, 1, {});
  ASSERT_TRUE(plan.exchanges());
  std::size_t own = 0;
  for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
    RankMemory memory;
    plan.prepare(rank, 0, memory);
    EXPECT_EQ(memory.exchange.messages->size(), memory.messages.size());
    std::map<std::uint32_t, int> unpaired;  // by tag
    for (const auto& spec : memory.messages) {
      if (spec.peer != rank) continue;
      ++own;
      unpaired[spec.options.tag] += spec.kind == OperationKind::send ? 1 : -1;
    }
    for (const auto& [tag, count] : unpaired) EXPECT_EQ(count, 0) << "tag " << tag;
  }
  EXPECT_GT(own, 0u);
}

TEST(MessagePlan, ExchangesAreOneCallAndReportAllTheirMessages) {
  const RunRecord record = record_of(
      "ranks: 4 rounds: 5 operation { kind: messages bytes: 8192 messages_max: 20 tags: 4 "
      "any_source: true exchange: true delivery { deadline_ms: 20000 } } link { delay_ms { fixed: "
      "0.2 } loss { random { p: 0.1 } } }");
  EXPECT_EQ(measure(record, "failed_calls"), 0);
  EXPECT_EQ(measure(record, "loss"), 0);
  EXPECT_GT(measure(record, "loss_first_pass"), 0.03);
}

TEST(MessagePlan, BeforeACallRanksDifferInHowManyMessagesTheyHave) {
  const auto scenario =
      scenario_of("ranks: 5 operation { kind: all_reduce bytes: 64 messages_first: 2 }");
  const MessagePlan plan(scenario, 1, {});
  std::map<std::size_t, int> ranks_with;
  for (std::uint32_t round = 0; round < 8; ++round) {
    for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
      RankMemory memory;
      plan.prepare(rank, round, memory);
      ++ranks_with[memory.messages.size()];
    }
  }
  EXPECT_GT(ranks_with[2], 0);
  EXPECT_GT(ranks_with[1] + ranks_with[0], 0);
  EXPECT_EQ(ranks_with[0] + ranks_with[1] + ranks_with[2], 40);
}

}  // namespace
}  // namespace leeway::sim
