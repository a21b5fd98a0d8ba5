#include "scenario/field_path.h"

#include <gtest/gtest.h>

#include "scenario.pb.h"

namespace leeway::sim::scenario {
namespace {

std::string error_of_path(std::string_view text) {
  const Result<FieldPath> path = parse_path(*Scenario::descriptor(), text);
  return path.ok() ? "accepted" : std::string(path.status().text());
}

TEST(ParsePath, ReadsNamesIndicesAndStars) {
  for (const char* text : {"ranks", "link", "link[0].rate_mbps", "link[12].loss.gilbert_elliott.p",
                           "link[*].queue", "topology.regions.rtt_ms[3]", "link[0].and"}) {
    const Result<FieldPath> path = parse_path(*Scenario::descriptor(), text);
    ASSERT_TRUE(path.ok()) << path.status().text();
    EXPECT_EQ(to_string(*path), text);
  }
}

TEST(ParsePath, NamesTheNearestFieldOfTheMessageAtThatPlace) {
  EXPECT_EQ(error_of_path("link[0].lose.random.p"),
            "link[0].lose.random.p: Link has no field \"lose\"; did you mean \"loss\"?");
  EXPECT_EQ(error_of_path("link[0].loss.gilbert_eliott.p"),
            "link[0].loss.gilbert_eliott.p: Loss has no field \"gilbert_eliott\"; did you mean "
            "\"gilbert_elliott\"?");
  EXPECT_EQ(error_of_path("seed.zzzzzzzz"),
            "seed.zzzzzzzz: Seed has no field \"zzzzzzzz\"; valid are from, count");
}

TEST(ParsePath, RefusesIndicesThatAreNone) {
  const std::string how = ": an index is written link[0], all entries link[*]";
  for (const std::string text : {"link[]", "link[-1]", "link[a]", "link[0", "link[0]x", "link[1 ]",
                                 "link[99999999999]", "link[+1]"}) {
    EXPECT_EQ(error_of_path(text), text + how);
  }
  EXPECT_EQ(error_of_path("ranks[0]"), "ranks[0]: ranks is not a list, so it has no index");
}

TEST(ParsePath, RefusesToLookIntoListsAndValues) {
  EXPECT_EQ(error_of_path("link.rate_mbps"),
            "link.rate_mbps: link is a list: write link[0] for its first entry or link[*] for all");
  EXPECT_EQ(error_of_path("ranks.p"), "ranks.p: ranks is a value, so it has no fields");
}

TEST(ParsePath, RefusesEmptyStepsAndEndlessTexts) {
  EXPECT_NE(error_of_path(""), "accepted");
  EXPECT_NE(error_of_path("."), "accepted");
  EXPECT_NE(error_of_path("seed."), "accepted");
  EXPECT_NE(error_of_path("seed..from"), "accepted");
  EXPECT_EQ(error_of_path(std::string(5000, 'a')), "a field's path of 5000 characters");
}

}  // namespace
}  // namespace leeway::sim::scenario
