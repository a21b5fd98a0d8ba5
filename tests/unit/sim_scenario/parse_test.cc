// Tests error messages for a person who mistyped something.
#include "scenario/parse.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "unit/sim_scenario/scenario_text.h"

namespace leeway::sim::scenario {
namespace {

TEST(ParseText, EmptyTextIsTheDefaultScenario) {
  const Scenario scenario = parsed("");
  EXPECT_EQ(scenario.ranks(), 4u);
  EXPECT_EQ(scenario.seed().count(), 1u);
  EXPECT_EQ(scenario.operation().codec(), "fp32");
}

TEST(ParseText, ReadsCommentsListsAndNestedMessages) {
  const Scenario scenario = parsed(
      "# a comment\n"
      "ranks: 8  # another\n"
      "link { loss { list { index: [3, 5, 8] } } }\n"
      "link { from: \"0-3\" delay_ms { fixed: 2.5 } }\n");
  EXPECT_EQ(scenario.ranks(), 8u);
  EXPECT_EQ(scenario.link(0).loss().list().index(2), 8u);
  EXPECT_EQ(scenario.link(1).delay_ms().fixed(), 2.5);
}

TEST(ParseText, NamesTheNearestFieldOfAnUnknownOne) {
  EXPECT_EQ(error_of("ranks: 4\nlink {\n  rat_mbps: 100\n}\n"),
            "a.txtpb:3:3: Link has no field \"rat_mbps\"; did you mean \"rate_mbps\"?");
  EXPECT_EQ(
      error_of("link { loss { gilbert_eliott { p: 0.1 } } }"),
      "a.txtpb:1:15: Loss has no field \"gilbert_eliott\"; did you mean \"gilbert_elliott\"?");
  EXPECT_EQ(error_of("colour: 3"),
            "a.txtpb:1:1: Scenario has no field \"colour\"; valid are name, description, ranks, "
            "group, seed, rounds, duration_ms, endpoint, contents, operation, workload, topology, "
            "link, cross_traffic, compute, ...");
}

TEST(ParseText, NamesTheNearestValueOfAnEnumeration) {
  EXPECT_EQ(error_of("operation {\n  estimator: symetric_ratio\n}"),
            "a.txtpb:2:14: estimator cannot be \"symetric_ratio\"; did you mean "
            "\"symmetric_ratio\"?");
  EXPECT_EQ(error_of("endpoint: zzzzzz"),
            "a.txtpb:1:11: endpoint cannot be \"zzzzzz\"; valid are core, tcp_ring");
}

TEST(ParseText, FindsAnUnknownNameThoughTheSameWordIsElsewhere) {
  EXPECT_EQ(error_of("# rat: a comment\nrat\n\n  : 3  # rat\n").substr(0, 13), "a.txtpb:2:1: ");
  EXPECT_EQ(error_of("link { from: \"rat\"\n\trat { } }").substr(0, 13), "a.txtpb:2:9: ");
  EXPECT_EQ(error_of("rat # karat, rats\n : 3").substr(0, 13), "a.txtpb:1:1: ");
}

TEST(ParseText, NamesThePlaceOfTextThatIsNoScenario) {
  EXPECT_EQ(error_of("ranks: four"), "a.txtpb:1:8: Expected integer, got: four");
  EXPECT_EQ(error_of("ranks: -4"), "a.txtpb:1:8: Expected integer, got: -");
  EXPECT_EQ(error_of("ranks: 4\nranks: 5"),
            "a.txtpb:2:6: Non-repeated field \"ranks\" is specified multiple times.");
  EXPECT_EQ(error_of("topology { star {} ring {} }"),
            "a.txtpb:1:25: Field \"ring\" is specified along with field \"star\", another member "
            "of oneof \"kind\".");
  EXPECT_EQ(error_of("link {\n"), "a.txtpb:2:1: Expected identifier, got: ");
  EXPECT_EQ(error_of("name: \"abc\n"),
            "a.txtpb:1:11: String literals cannot cross line boundaries.");
}

TEST(ParseText, NamesPlaceValueAndLimitOfImpossibleNumbers) {
  EXPECT_EQ(error_of("ranks: 0"), "a.txtpb:1:1: ranks is 0; allowed is 1 to 16384");
  EXPECT_EQ(error_of("link {}\nlink { loss { random {\n  p: 1.5 } } }"),
            "a.txtpb:3:3: link[1].loss.random.p is 1.5; allowed is 0 to 1");
  EXPECT_EQ(error_of("link { delay_ms { fixed: -1 } }"),
            "a.txtpb:1:19: link[0].delay_ms.fixed is -1; allowed is 0 to 600000");
  EXPECT_EQ(error_of("link { loss { random { p: nan } } }"),
            "a.txtpb:1:24: link[0].loss.random.p is nan; allowed is 0 to 1");
  EXPECT_EQ(error_of("link { rate_mbps: 0 }"),
            "a.txtpb:1:8: link[0].rate_mbps is 0; allowed is above 0, up to 10000000");
  EXPECT_EQ(error_of("link { rate_mbps: inf }"),
            "a.txtpb:1:8: link[0].rate_mbps is inf; allowed is above 0, up to 10000000");
}

TEST(ParseText, LimitsHoldForEveryEntryOfAList) {
  EXPECT_EQ(error_of("link { loss { list { index: 1\n index: 2000000000000 } } }"),
            "a.txtpb:2:2: link[0].loss.list.index[1] is 2000000000000; allowed is 0 to "
            "1000000000000");
  EXPECT_EQ(error_of("link { loss { list {\n index: [1, 2000000000000] } } }"),
            "a.txtpb:2:2: link[0].loss.list.index[1] is 2000000000000; allowed is 0 to "
            "1000000000000");
}

TEST(ParseText, NamesWhatIsMissingAtTheMessageThatNeedsIt) {
  EXPECT_EQ(error_of("ranks: 4\n  slow { factor: 2 }"),
            "a.txtpb:2:3: slow[0].rank is missing; Slow needs it");
  EXPECT_EQ(error_of("link { loss {\n random {} } }"),
            "a.txtpb:2:2: link[0].loss.random.p is missing; Random needs it");
}

TEST(ParseText, KeepsTerminalCommandsOutOfMessages) {
  EXPECT_EQ(error_of("ranks: \x1b"),
            "a.txtpb:1:8: Invalid control characters encountered in text.");
  const std::string error = error_of("ranks: \"\xc3\xa4\"");
  for (const char c : error) EXPECT_TRUE(c >= ' ' && c <= '~') << error;
}

TEST(ParseText, RefusesFilesThatAreTooLarge) {
  EXPECT_EQ(error_of(std::string(kScenarioBytesMax + 1, ' ')),
            "a.txtpb: more than 1048576 bytes; long tables belong into files of their own");
  EXPECT_EQ(error_of(std::string(kScenarioBytesMax, ' ')), "accepted");
}

TEST(ParseText, LongFileNamesLeaveRoomForTheMessage) {
  const auto result = parse_text("ranks: 0", std::string(500, 'd') + "/a.txtpb");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().text().find("/a.txtpb:1:1: ranks is 0; allowed is 1 to 16384"),
            std::string::npos);
}

class ReadFile : public ::testing::Test {
 protected:
  ReadFile() { std::filesystem::create_directories(folder_); }
  ~ReadFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  // Each process has its own folder, because several builds may run tests at once.
  std::string folder_ = ::testing::TempDir() + "leeway_scenario_" + std::to_string(::getpid());
};

TEST_F(ReadFile, NamesAScenarioAfterItsFile) {
  const auto nameless = read_file(write("incast.txtpb", "ranks: 2"));
  ASSERT_TRUE(nameless.ok()) << nameless.status().text();
  EXPECT_EQ(nameless->name(), "incast");
  const auto named = read_file(write("b.txtpb", "name: \"other\""));
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->name(), "other");
}

TEST_F(ReadFile, ReportsFilesThatCannotBeRead) {
  const auto absent = read_file("/nowhere/a.txtpb");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(absent.status().text(), "/nowhere/a.txtpb: cannot be read: No such file or directory");
  const auto directory = read_file("/");
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.status().text(), "/: cannot be read: Is a directory");
}

TEST_F(ReadFile, FindsFilesBesideTheScenario) {
  write("loss.trace", "0010");
  const auto scenario =
      read_file(write("a.txtpb", "link { loss { trace { path: \"loss.trace\" } } }"));
  ASSERT_TRUE(scenario.ok()) << scenario.status().text();
  EXPECT_EQ(scenario->link(0).loss().trace().path(), folder_ + "/loss.trace");
}

TEST_F(ReadFile, NamesTheFieldOfAFileThatIsNotThere) {
  const std::string path = write("a.txtpb", "link {\n  delay_ms { trace: \"/nowhere/t\" }\n}");
  const auto scenario = read_file(path);
  ASSERT_FALSE(scenario.ok());
  EXPECT_NE(scenario.status().text().find(
                "a.txtpb:2:14: link[0].delay_ms.trace cannot be read: /nowhere/t: No such file or "
                "directory"),
            std::string::npos)
      << scenario.status().text();
}

}  // namespace
}  // namespace leeway::sim::scenario
