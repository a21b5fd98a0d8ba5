#include "swarm/shrink.h"

#include <gtest/gtest.h>

#include "scenario/parse.h"
#include "scenario/validate.h"
#include "swarm/draw.h"

namespace leeway::sim::swarm {
namespace {

using scenario::Scenario;

constexpr unsigned kTries = 1000;

// Returns true, which counts as a failure, if some link copies packets and there are at least three
// ranks and two rounds.
bool copies(const Scenario& scenario) {
  if (scenario.ranks() < 3 || scenario.rounds() < 2) return false;
  for (const auto& link : scenario.link()) {
    if (link.has_duplicate()) return true;
  }
  return false;
}

TEST(Shrink, ReachesTheMinimumFromEveryDrawnScenario) {
  constexpr const char* kMinimum =
      "ranks: 3 rounds: 2 operation { bytes: 4 } link { duplicate { p: 0.5 } }";
  auto minimum = scenario::parse_text(kMinimum, "minimum");
  ASSERT_TRUE(minimum.ok());
  int shrunk_ones = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Scenario drawn = draw_scenario(seed);
    drawn.clear_checkers();
    if (!copies(drawn)) continue;
    Scenario shrunk = shrink(drawn, copies, kTries);
    ASSERT_EQ(shrunk.link_size(), 1) << shrunk.DebugString();
    shrunk.mutable_link(0)->mutable_duplicate()->set_p(0.5);
    shrunk.mutable_operation()->mutable_replica()->clear_drift_samples();
    shrunk.mutable_operation()->clear_replica();
    EXPECT_EQ(shrunk.SerializeAsString(), minimum->SerializeAsString()) << shrunk.DebugString();
    ++shrunk_ones;
  }
  EXPECT_GT(shrunk_ones, 30);
}

// The numbers of ranks and of ranks per site must be changed together.
TEST(Shrink, MakesSitesFewerAndSmaller) {
  const auto drawn = scenario::parse_text(
      "ranks: 15 rounds: 3 operation { bytes: 4096 site_ranks: 5 site_piece_bytes: 1024 }",
      "drawn");
  ASSERT_TRUE(drawn.ok());
  const Scenario shrunk = shrink(
      *drawn, [](const Scenario& candidate) { return candidate.operation().site_ranks() > 0; },
      kTries);
  EXPECT_EQ(shrunk.ranks(), 4u);
  EXPECT_EQ(shrunk.operation().site_ranks(), 2u);
  EXPECT_FALSE(shrunk.operation().has_site_piece_bytes());
}

TEST(Shrink, MakesLanesFewer) {
  const auto drawn = scenario::parse_text(
      "ranks: 4 rounds: 2 operation { bytes: 65536 lanes: 4 slice_bytes: 8192 }", "drawn");
  ASSERT_TRUE(drawn.ok());
  const auto has_lanes = [](const Scenario& candidate) {
    return candidate.operation().lanes() > 1;
  };
  EXPECT_EQ(shrink(*drawn, has_lanes, kTries).operation().lanes(), 2u);
  const auto fails = [](const Scenario&) { return true; };
  EXPECT_FALSE(shrink(*drawn, fails, kTries).operation().has_slice_bytes());
}

TEST(Shrink, AsksAboutValidScenariosAndNoMoreOftenThanTold) {
  const Scenario drawn = draw_scenario(1);
  for (const unsigned tries : {0u, 1u, 7u, 50u}) {
    unsigned asked = 0;
    const Scenario shrunk = shrink(
        drawn,
        [&](const Scenario& candidate) {
          ++asked;
          EXPECT_TRUE(scenario::validate(candidate).ok());
          return asked % 2 == 0;
        },
        tries);
    EXPECT_LE(asked, tries);
    EXPECT_TRUE(scenario::validate(shrunk).ok());
  }
}

TEST(Shrink, LeavesWhatCannotBeSmaller) {
  const Scenario drawn = draw_scenario(2);
  const Scenario shrunk = shrink(
      drawn, [](const Scenario&) { return false; }, kTries);
  EXPECT_EQ(shrunk.SerializeAsString(), drawn.SerializeAsString());
}

TEST(Shrink, TheChecksThatAreSkippedStaySkipped) {
  const Scenario drawn = draw_scenario(3);
  const Scenario shrunk = shrink(
      drawn, [](const Scenario&) { return true; }, kTries);
  EXPECT_EQ(shrunk.ranks(), 1u);
  EXPECT_EQ(shrunk.rounds(), 1u);
  EXPECT_EQ(shrunk.operation().bytes(), 4u);
  EXPECT_EQ(shrunk.link_size(), 0);
  EXPECT_EQ(shrunk.checkers().SerializeAsString(), drawn.checkers().SerializeAsString());
}

}  // namespace
}  // namespace leeway::sim::swarm
