#include "sim/plan.h"

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace leeway::tools::simulation {
namespace {

TEST(ParseSeeds, BothEndsAreRun) {
  const auto seeds = parse_seeds("3..17");
  ASSERT_TRUE(seeds.ok());
  EXPECT_EQ(seeds->from, 3u);
  EXPECT_EQ(seeds->count, 15u);
}

TEST(ParseSeeds, OneNumberIsOneSeed) {
  const auto seeds = parse_seeds("42");
  ASSERT_TRUE(seeds.ok());
  EXPECT_EQ(seeds->from, 42u);
  EXPECT_EQ(seeds->count, 1u);
}

TEST(ParseSeeds, AnythingElseIsRefusedWithItsText) {
  for (const char* text :
       {"", "..", "1..", "..5", "5..3", "a..b", "1...3", "-1..3", "1..2000000",
        "2000000000000000..2000000000000001", "1..99999999999999999999", "1, 2"}) {
    const auto seeds = parse_seeds(text);
    ASSERT_FALSE(seeds.ok()) << text;
    EXPECT_EQ(seeds.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(seeds.status().text().find("--seeds " + std::string(text)), std::string_view::npos);
  }
}

class MakePlan : public testing::Test {
 protected:
  Arguments arguments_for(const std::string& text) {
    Arguments arguments;
    arguments.file = folder_.write("small.txtpb", text);
    return arguments;
  }
  TemporaryFolder folder_;
};

TEST_F(MakePlan, RunsFollowTheGridTheSeedChangingFastest) {
  const auto plan = make_plan(
      arguments_for("seed { from: 7 count: 2 } sweep { field: \"ranks\" values: [2, 3] }"));
  ASSERT_TRUE(plan.ok()) << plan.status().c_str();
  ASSERT_EQ(plan->runs(), 4u);
  EXPECT_EQ(plan->run(0).cell, 0u);
  EXPECT_EQ(plan->run(1).cell, 0u);
  EXPECT_EQ(plan->run(1).seed, 8u);
  EXPECT_EQ(plan->run(2).cell, 1u);
  EXPECT_EQ(plan->run(2).seed, 7u);
  EXPECT_EQ(plan->grid[1].scenario.ranks(), 3u);
  EXPECT_EQ(plan->scenario.name(), "small");
}

TEST_F(MakePlan, AShardHoldsEverySoManyThRun) {
  Arguments arguments =
      arguments_for("seed { from: 7 count: 3 } sweep { field: \"ranks\" values: [2, 3] }");
  arguments.shard = "2/4";
  const auto plan = make_plan(arguments);
  ASSERT_TRUE(plan.ok()) << plan.status().c_str();
  EXPECT_EQ(plan->all_runs(), 6u);
  ASSERT_EQ(plan->runs(), 2u);
  EXPECT_EQ(plan->run(0).cell, 0u);
  EXPECT_EQ(plan->run(0).seed, 8u);
  EXPECT_EQ(plan->run(1).cell, 1u);
  EXPECT_EQ(plan->run(1).seed, 9u);
  arguments.shard = "4/2";
  EXPECT_FALSE(make_plan(arguments).ok());
}

TEST_F(MakePlan, SettingsAndSeedsReplaceTheFiles) {
  Arguments arguments =
      arguments_for("seed { from: 7 count: 2 } sweep { field: \"ranks\" values: [2, 3] }");
  arguments.settings = {"ranks=5", "rounds=3"};
  arguments.seeds = "1..4";
  const auto plan = make_plan(arguments);
  ASSERT_TRUE(plan.ok()) << plan.status().c_str();
  ASSERT_EQ(plan->grid.size(), 1u);
  EXPECT_EQ(plan->grid[0].scenario.ranks(), 5u);
  EXPECT_EQ(plan->grid[0].scenario.rounds(), 3u);
  EXPECT_EQ(plan->runs(), 4u);
  EXPECT_EQ(plan->run(3).seed, 4u);
}

TEST_F(MakePlan, FilesInSettingsAndSweepsLieBesideTheScenario) {
  folder_.write("delays", "1\n2\n");
  Arguments arguments = arguments_for(
      "link { delay_ms { fixed: 1 } }\n"
      "sweep { field: \"link[0].delay_ms\" texts: [\"trace: 'delays'\", \"fixed: 2\"] }");
  auto plan = make_plan(arguments);
  ASSERT_TRUE(plan.ok()) << plan.status().c_str();
  EXPECT_EQ(plan->grid[0].scenario.link(0).delay_ms().trace(), (folder_ / "delays").string());
  arguments.settings = {"link[0].delay_ms.trace=delays"};
  arguments.settings.push_back("link[0].delay_ms=trace: 'delays'");
  plan = make_plan(arguments);
  ASSERT_TRUE(plan.ok()) << plan.status().c_str();
  EXPECT_EQ(plan->grid[0].scenario.link(0).delay_ms().trace(), (folder_ / "delays").string());
  arguments.settings = {"link[0].delay_ms=trace: 'absent'"};
  EXPECT_FALSE(make_plan(arguments).ok());
}

// Calls that the library refuses in any network must not become results of a run.
TEST_F(MakePlan, CallsThatTheLibraryRefusesAreRefusedBeforeAnyRun) {
  const std::pair<const char*, const char*> cases[] = {
      {"operation { kind: all_gather delivery { kind: best_effort } }", "all_gather: delivery"},
      {"operation { kind: all_to_all delivery { kind: bounded loss_max: 0.1 } }", "all_to_all"},
      {"operation { kind: messages delivery { kind: best_effort } }", "send: delivery"},
      {"operation { delivery { kind: exact } spread: best_effort }", "lossy spread"},
      {"operation { kind: broadcast codec: \"automatic\" }", "codec automatic"},
      {"endpoint: tcp_ring operation { kind: all_to_all }", "tcp_ring does no all_to_all"},
      {"communicator { operation { kind: gather delivery { kind: best_effort } } }",
       "communicator[0]: gather: delivery"},
  };
  for (const auto& [text, why] : cases) {
    const auto plan = make_plan(arguments_for(std::string("ranks: 4 ") + text));
    ASSERT_FALSE(plan.ok()) << text;
    EXPECT_NE(plan.status().text().find(why), std::string_view::npos) << plan.status().c_str();
    EXPECT_NE(plan.status().text().find("refused by the library"), std::string_view::npos);
  }
  const auto swept =
      make_plan(arguments_for("operation { delivery { kind: best_effort } } sweep { field: "
                              "\"operation.kind\" texts: [\"all_reduce\", \"all_gather\"] }"));
  ASSERT_FALSE(swept.ok());
  EXPECT_NE(swept.status().text().find("with operation.kind=all_gather is refused"),
            std::string_view::npos)
      << swept.status().c_str();
}

TEST_F(MakePlan, AScenarioThatSaysNothingIsRefused) {
  for (const char* text : {"", "\n", "# only a comment\n", "name: \"x\""}) {
    const auto plan = make_plan(arguments_for(text));
    ASSERT_FALSE(plan.ok()) << text;
    EXPECT_NE(plan.status().text().find("says nothing"), std::string_view::npos);
  }
}

TEST_F(MakePlan, ABadSettingIsNamed) {
  Arguments arguments = arguments_for("ranks: 4");
  arguments.settings = {"rankz=3"};
  const auto plan = make_plan(arguments);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.status().text().find("--set rankz=3"), std::string_view::npos);
  EXPECT_NE(plan.status().text().find("ranks"), std::string_view::npos);
}

TEST_F(MakePlan, ScenarioTextReadsBackAsTheSamePlan) {
  Arguments arguments = arguments_for("ranks: 4 sweep { field: \"rounds\" values: [2, 3] }");
  arguments.settings = {"operation.bytes=4096"};
  const auto plan = make_plan(arguments);
  ASSERT_TRUE(plan.ok());
  const std::string text = scenario_text(plan->scenario);
  const auto again = make_plan(arguments_for(text));
  ASSERT_TRUE(again.ok()) << again.status().c_str();
  EXPECT_EQ(scenario_text(again->scenario), text);
  EXPECT_EQ(again->runs(), plan->runs());
}

}  // namespace
}  // namespace leeway::tools::simulation
