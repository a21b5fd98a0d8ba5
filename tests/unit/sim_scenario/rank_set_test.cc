#include "scenario/rank_set.h"

#include <gtest/gtest.h>

namespace leeway::sim::scenario {
namespace {

using Ranks = std::vector<std::uint32_t>;

Scenario eight_ranks() {
  Scenario scenario;
  scenario.set_ranks(8);
  const auto add = [&](const char* name, const char* ranks) {
    Group& group = *scenario.add_group();
    group.set_name(name);
    group.set_ranks(ranks);
  };
  add("eu", "0-2");
  add("us", "5-");
  add("both", "eu");
  return scenario;
}

Ranks chosen(std::string_view selector) {
  const auto ranks = ranks_of(eight_ranks(), selector);
  EXPECT_TRUE(ranks.ok()) << selector;
  return ranks.ok() ? *ranks : Ranks{};
}

std::string refused(std::string_view selector) {
  const auto ranks = ranks_of(eight_ranks(), selector);
  return ranks.ok() ? "accepted" : std::string(ranks.status().text());
}

TEST(RanksOf, ReadsRanksRangesGroupsAndLists) {
  EXPECT_EQ(chosen("3"), Ranks{3});
  EXPECT_EQ(chosen("2-4"), (Ranks{2, 3, 4}));
  EXPECT_EQ(chosen("6-"), (Ranks{6, 7}));
  EXPECT_EQ(chosen("eu"), (Ranks{0, 1, 2}));
  EXPECT_EQ(chosen("us, 1"), (Ranks{1, 5, 6, 7}));
  EXPECT_EQ(chosen("*").size(), 8u);
}

TEST(RanksOf, ReturnsEachRankOnceAndRising) {
  EXPECT_EQ(chosen("7,eu,0-1,7"), (Ranks{0, 1, 2, 7}));
}

TEST(RanksOf, RefusesRanksThatDoNotExist) {
  EXPECT_EQ(refused("8"), "\"8\" leaves the ranks there are, 0 to 7");
  EXPECT_EQ(refused("5-8"), "\"5-8\" leaves the ranks there are, 0 to 7");
  EXPECT_EQ(refused("9-"), "\"9-\" leaves the ranks there are, 0 to 7");
  EXPECT_EQ(refused("4294967295-"), "\"4294967295-\" leaves the ranks there are, 0 to 7");
}

TEST(RanksOf, RefusesWhatIsNoSelector) {
  EXPECT_EQ(refused("4-2"), "\"4-2\" is a range that falls");
  EXPECT_EQ(refused("1x"), "\"1x\" is no rank and no range");
  EXPECT_EQ(refused("1-x"), "\"1-x\" is no range of ranks");
  EXPECT_EQ(refused("99999999999"), "\"99999999999\" is no rank and no range");
  EXPECT_EQ(refused(""), "\"\" chooses no rank");
  EXPECT_EQ(refused("1,"), "\"\" chooses no rank");
}

TEST(RanksOf, NamesTheNearestGroup) {
  EXPECT_EQ(refused("uk"), "\"uk\" is no group; valid are eu, us, both");
  EXPECT_EQ(refused("bth"), "\"bth\" is no group; did you mean \"both\"?");
}

TEST(RanksOf, GroupsAreMadeOfRanksOnly) {
  EXPECT_EQ(refused("both"), "\"eu\" is no rank and no range");
}

}  // namespace
}  // namespace leeway::sim::scenario
