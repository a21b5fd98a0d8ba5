#include "sim/swarm_outcome.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leeway::tools::simulation {
namespace {

SwarmOutcome part(std::uint32_t number, std::uint32_t of) {
  SwarmOutcome outcome{.seeds = {5, 10}, .shard = {number, of}, .tally = {}, .seconds = 0.5};
  outcome.tally.seeds = outcome.shard.share(10);
  outcome.tally.rounds = number;
  outcome.tally.packets = 100 * number;
  outcome.tally.events = 1000 * number;
  outcome.tally.trace_hash = ~std::uint64_t{0} - number;
  outcome.tally.failures = {{20 - number, {"i3", "three: \"here\""}}};
  return outcome;
}

TEST(SwarmOutcome, IsReadAsItWasWritten) {
  const std::string text = outcome_json(part(2, 3));
  const auto read = parse_outcome(text);
  ASSERT_TRUE(read.ok()) << read.status().c_str();
  EXPECT_EQ(outcome_json(*read), text);
  EXPECT_EQ(read->shard, (Shard{2, 3}));
  EXPECT_EQ(read->tally.trace_hash, ~std::uint64_t{0} - 2);
  EXPECT_EQ(read->tally.failures.at(0).failure.text, "three: \"here\"");
}

TEST(SwarmOutcome, OfTheWholeNamesNoShard) {
  EXPECT_EQ(outcome_json(part(1, 1)).find("shard"), std::string::npos);
}

TEST(SwarmOutcome, WhatIsNoneOrDamagedIsRefused) {
  const std::string text = outcome_json(part(2, 3));
  EXPECT_FALSE(parse_outcome("").ok());
  EXPECT_FALSE(parse_outcome("[]").ok());
  EXPECT_FALSE(parse_outcome("{\"seeds\": 1}").ok());
  EXPECT_FALSE(parse_outcome(text.substr(0, text.size() / 2)).ok());
  for (const char* key : {"seeds", "rounds", "trace_hash", "failures", "2/3"}) {
    std::string other = text;
    other.replace(other.find(key), 1, "x");
    EXPECT_FALSE(parse_outcome(other).ok()) << key;
  }
}

const std::vector<std::string> kNames = {"a", "b", "c"};

TEST(SwarmOutcome, TheWholeIsTheSumInAnyOrder) {
  const std::vector<SwarmOutcome> parts = {part(3, 3), part(1, 3), part(2, 3)};
  const auto whole = merge_outcomes(parts, kNames);
  ASSERT_TRUE(whole.ok()) << whole.status().c_str();
  EXPECT_TRUE(whole->shard.whole());
  EXPECT_EQ(whole->seeds, (Seeds{5, 10}));
  EXPECT_EQ(whole->tally.seeds, 10u);
  EXPECT_EQ(whole->tally.packets, 600u);
  EXPECT_EQ(whole->tally.trace_hash, std::uint64_t{0} - 9);  // each is -1 - number
  ASSERT_EQ(whole->tally.failures.size(), 3u);
  EXPECT_EQ(whole->tally.failures[0].seed, 17u);
  EXPECT_EQ(whole->tally.failures[2].seed, 19u);
  EXPECT_EQ(whole->seconds, 1.5);
}

TEST(SwarmOutcome, WhatDoesNotFitTogetherIsRefusedByName) {
  const auto why = [](std::vector<SwarmOutcome> parts) {
    return std::string(merge_outcomes(parts, kNames).status().text());
  };
  EXPECT_EQ(why({part(1, 3), part(3, 3)}), "shard 2 of 3 is in no part");
  EXPECT_EQ(why({part(1, 3), part(1, 3)}), "b is shard 1 of 3, as a part before it");
  EXPECT_EQ(why({part(1, 2), part(2, 3)}), "b is of other seeds or of other shards than a");
  SwarmOutcome other = part(2, 2);
  other.seeds.count = 11;
  EXPECT_EQ(why({part(1, 2), other}), "b is of other seeds or of other shards than a");
}

}  // namespace
}  // namespace leeway::tools::simulation
