#include "scenario/set_field.h"

#include "unit/sim_scenario/scenario_text.h"

namespace leeway::sim::scenario {
namespace {

std::string error_of_setting(const std::string& assignment) {
  Scenario scenario = parsed("link {} link { loss { random { p: 0.5 } } }");
  const std::string before = scenario.SerializeAsString();
  const Status status = apply_setting(scenario, assignment);
  if (status.ok()) return "accepted";
  EXPECT_EQ(scenario.SerializeAsString(), before) << assignment;
  return std::string(status.text());
}

TEST(SetField, WritesEveryTypeOfValue) {
  Scenario scenario = parsed("link {}");
  for (const char* assignment :
       {"ranks=12", "seed.from=5000000000", "operation.bytes=1e6", "operation.estimator=augmented",
        "operation.codec=nvfp4:nearest", "operation.permute=false", "link[0].rate_mbps = 2.5",
        "name=\"in quotes\"", "description=a=b"}) {
    const Status status = apply_setting(scenario, assignment);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  EXPECT_EQ(scenario.ranks(), 12u);
  EXPECT_EQ(scenario.seed().from(), 5000000000u);
  EXPECT_EQ(scenario.operation().bytes(), 1000000u);
  EXPECT_EQ(scenario.operation().estimator(), Operation::augmented);
  EXPECT_EQ(scenario.operation().codec(), "nvfp4:nearest");
  EXPECT_FALSE(scenario.operation().permute());
  EXPECT_EQ(scenario.link(0).rate_mbps(), 2.5);
  EXPECT_EQ(scenario.name(), "in quotes");
  EXPECT_EQ(scenario.description(), "a=b");
}

TEST(SetField, MakesMessagesOnTheWay) {
  Scenario scenario = parsed("link {}");
  ASSERT_TRUE(set_field(scenario, "link[0].loss.gilbert_elliott.p", "0.01").ok());
  EXPECT_EQ(scenario.link(0).loss().gilbert_elliott().p(), 0.01);
}

TEST(SetField, AStarMeansEveryEntry) {
  Scenario scenario = parsed("link {} link {} link {}");
  ASSERT_TRUE(set_field(scenario, "link[*].rate_mbps", "7").ok());
  for (const Link& link : scenario.link()) EXPECT_EQ(link.rate_mbps(), 7.0);
}

TEST(SetField, ReplacesWholeMessages) {
  Scenario scenario = parsed("link { loss { random { p: 0.5 } } }");
  ASSERT_TRUE(set_field(scenario, "link[0].loss", "every { n: 3 }").ok());
  EXPECT_FALSE(scenario.link(0).loss().has_random());
  EXPECT_EQ(scenario.link(0).loss().every().n(), 3u);
  ASSERT_TRUE(set_field(scenario, "link[0]", "from: \"1\"").ok());
  EXPECT_EQ(scenario.link(0).from(), "1");
  EXPECT_FALSE(scenario.link(0).has_loss());
}

TEST(SetField, ReplacesWholeListsAndSingleEntries) {
  Scenario scenario = parsed("link { loss { list { index: [1, 2] } } }");
  ASSERT_TRUE(set_field(scenario, "link[0].loss.list.index", "[4, 5,6]").ok());
  ASSERT_EQ(scenario.link(0).loss().list().index_size(), 3);
  ASSERT_TRUE(set_field(scenario, "link[0].loss.list.index[1]", "9").ok());
  EXPECT_EQ(scenario.link(0).loss().list().index(0), 4u);
  EXPECT_EQ(scenario.link(0).loss().list().index(1), 9u);
  ASSERT_TRUE(set_field(scenario, "checkers.skip", "i1, i7").ok());
  EXPECT_EQ(scenario.checkers().skip(1), "i7");
  ASSERT_TRUE(set_field(scenario, "checkers.skip", "[]").ok());
  EXPECT_EQ(scenario.checkers().skip_size(), 0);
}

TEST(SetField, NamesTheNearestField) {
  EXPECT_EQ(error_of_setting("link[0].lose.random.p=1"),
            "link[0].lose.random.p: Link has no field \"lose\"; did you mean \"loss\"?");
  EXPECT_EQ(error_of_setting("operation.estimator=ratoi"),
            "operation.estimator cannot be \"ratoi\"; did you mean \"ratio\"?");
}

TEST(SetField, RefusesWrongTypesAndImpossibleValues) {
  EXPECT_EQ(error_of_setting("link[0].rate_mbps=fast"),
            "link[0].rate_mbps is a number, not \"fast\"");
  EXPECT_EQ(error_of_setting("ranks=2.5"), "ranks is a whole number, not \"2.5\"");
  EXPECT_EQ(error_of_setting("ranks="), "ranks is a whole number, not \"\"");
  EXPECT_EQ(error_of_setting("ranks=-1"), "ranks is -1; allowed is 1 to 16384");
  EXPECT_EQ(error_of_setting("ranks=4294967297"), "ranks is 4294967297; allowed is 1 to 16384");
  EXPECT_EQ(error_of_setting("link[1].loss.random.p=1.5"),
            "link[1].loss.random.p is 1.5; allowed is 0 to 1");
  EXPECT_EQ(error_of_setting("link[1].loss.random.p=nan"),
            "link[1].loss.random.p is nan; allowed is 0 to 1");
  EXPECT_EQ(error_of_setting("operation.permute=yes"),
            "operation.permute is true or false, not \"yes\"");
  EXPECT_EQ(error_of_setting("link[0].loss=random { p: 7 }"),
            "link[0].loss.random.p is 7; allowed is 0 to 1");
  EXPECT_EQ(error_of_setting("link[0].loss=rando { p: 7 }"),
            "link[0].loss = \"rando { p: 7 }\": Loss has no field \"rando\"; did you mean "
            "\"random\"?");
}

TEST(SetField, RefusesEntriesThatDoNotExist) {
  EXPECT_EQ(error_of_setting("link[2].rate_mbps=1"),
            "link[2].rate_mbps names nothing: link has 2 entries");
  EXPECT_EQ(error_of_setting("slow[*].factor=2"),
            "slow[*].factor names nothing: slow has 0 entries");
  EXPECT_EQ(error_of_setting("link=1"),
            "link is a list of messages: set the fields of one entry, such as link[0]");
}

TEST(SetField, ChangesNothingAfterAnErrorInAList) {
  EXPECT_EQ(error_of_setting("link[1].loss.list.index=1,x"),
            "link[1].loss.list.index is a whole number, not \"x\"");
}

TEST(ApplySetting, NeedsAnEqualsSign) {
  EXPECT_EQ(error_of_setting("ranks"),
            "\"ranks\" sets nothing; write field=value, such as link[0].loss.random.p=0.01");
}

TEST(ApplySetting, ReplacesTheSweepOverTheSameField) {
  Scenario scenario = parsed(
      "sweep { field: \"ranks\" values: [2, 4] }"
      "sweep { field: \"rounds\" values: [2, 4] }");
  ASSERT_TRUE(apply_setting(scenario, "ranks=3").ok());
  ASSERT_EQ(scenario.sweep_size(), 1);
  EXPECT_EQ(scenario.sweep(0).field(), "rounds");
  EXPECT_EQ(scenario.ranks(), 3u);
}

}  // namespace
}  // namespace leeway::sim::scenario
