#include "sim/output_folder.h"

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace leeway::tools::simulation {
namespace {

class OutputFolderTest : public testing::Test {
 protected:
  Status open_status(const std::string& scenario, Existing existing) {
    return OutputFolder::open(folder_ / "out", scenario, existing).status();
  }
  // Makes a folder as a command that finished one run leaves it.
  void fill() {
    const auto out = OutputFolder::open(folder_ / "out", "ranks: 4", Existing::refuse);
    ASSERT_TRUE(out.ok());
    ASSERT_TRUE(out->write("summary.json", "{}").ok());
    ASSERT_TRUE(out->write_run({2, 7}, "run").ok());
  }
  TemporaryFolder folder_;
};

TEST_F(OutputFolderTest, IsMadeAndHoldsWhatIsWritten) {
  fill();
  EXPECT_EQ(folder_.read("out/scenario.txtpb"), "ranks: 4");
  EXPECT_EQ(folder_.read("out/summary.json"), "{}");
  EXPECT_EQ(folder_.read("out/runs/2-7.json"), "run");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "out")) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 3u) << "trials and unfinished files are gone";
}

TEST_F(OutputFolderTest, ResultsAreNeitherReplacedNorMixedUnasked) {
  fill();
  const Status same = open_status("ranks: 4", Existing::refuse);
  EXPECT_EQ(same.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(same.text().find("--resume"), std::string_view::npos);
  const Status other = open_status("ranks: 5", Existing::refuse);
  EXPECT_NE(other.text().find("another scenario"), std::string_view::npos);
  EXPECT_EQ(folder_.read("out/scenario.txtpb"), "ranks: 4");
}

TEST_F(OutputFolderTest, ResumesTheSameScenarioOnly) {
  fill();
  const auto out = OutputFolder::open(folder_ / "out", "ranks: 4", Existing::resume);
  ASSERT_TRUE(out.ok());
  const auto run = out->read_run({2, 7});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(*run, "run");
  const auto absent = out->read_run({2, 8});
  ASSERT_TRUE(absent.ok());
  EXPECT_EQ(*absent, std::nullopt);
  EXPECT_FALSE(open_status("ranks: 5", Existing::resume).ok());
}

TEST_F(OutputFolderTest, IsSharedByThoseOfTheSameScenario) {
  fill();
  EXPECT_TRUE(open_status("ranks: 4", Existing::share).ok());
  EXPECT_TRUE(folder_.has("out/runs/2-7.json"));
  EXPECT_FALSE(open_status("ranks: 5", Existing::share).ok());
}

TEST_F(OutputFolderTest, OverwritingLeavesFilesOfOthers) {
  fill();
  folder_.write("out/notes.txt", "mine");
  const auto out = OutputFolder::open(folder_ / "out", "ranks: 5", Existing::overwrite);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(*out->read_run({2, 7}), std::nullopt);
  EXPECT_FALSE(folder_.has("out/summary.json"));
  EXPECT_EQ(folder_.read("out/scenario.txtpb"), "ranks: 5");
  EXPECT_EQ(folder_.read("out/notes.txt"), "mine");
}

TEST_F(OutputFolderTest, AScenarioWithoutResultsIsReplaced) {
  ASSERT_TRUE(open_status("ranks: 4", Existing::refuse).ok());
  EXPECT_TRUE(open_status("ranks: 5", Existing::refuse).ok());
  EXPECT_EQ(folder_.read("out/scenario.txtpb"), "ranks: 5");
}

TEST_F(OutputFolderTest, AFolderOfOthersMayBeUsed) {
  std::filesystem::create_directories(folder_ / "out");
  folder_.write("out/notes.txt", "mine");
  EXPECT_TRUE(open_status("ranks: 4", Existing::refuse).ok());
}

TEST_F(OutputFolderTest, APathThatCannotBeAFolderIsNamed) {
  folder_.write("file", "");
  const Status status =
      OutputFolder::open(folder_ / "file/out", "ranks: 4", Existing::refuse).status();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.text().find("file/out"), std::string_view::npos);
  EXPECT_NE(status.text().find("--out"), std::string_view::npos);
}

TEST_F(OutputFolderTest, AFileThatCannotBeWrittenIsNamed) {
  const auto out = OutputFolder::open(folder_ / "out", "ranks: 4", Existing::refuse);
  ASSERT_TRUE(out.ok());
  std::filesystem::create_directories(folder_ / "out/summary.json/inside");
  const Status status = out->write("summary.json", "{}");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.text().find("summary.json"), std::string_view::npos);
}

}  // namespace
}  // namespace leeway::tools::simulation
