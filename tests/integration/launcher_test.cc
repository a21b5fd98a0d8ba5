// Starts the worker by mpirun, with torchrun's variables, and without a launcher.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "integration/rank_group.h"

namespace leeway::integration {
namespace {

void expect_four_ranks(const std::vector<Facts>& all) {
  std::set<int> ranks;
  for (const Facts& facts : all) {
    EXPECT_EQ(facts.value("problems", Facts()), Facts::array()) << facts;
    EXPECT_EQ(facts.value("wrong", -1), 0);
    ranks.insert(facts.value("rank", -1));
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3}));
}

TEST(Launcher, OpenMpiStartsTheGroup) {
  if (run_command({"mpirun", "--version"}).exit_code != 0)
    GTEST_SKIP() << "mpirun is not installed (openmpi-bin)";
  // Each rank writes to a file of its own, because mpirun mixes simultaneous lines of more than
  // 1,024 bytes.
  const std::filesystem::path folder =
      testing::TempDir() + "leeway_mpirun_" + std::to_string(getpid());
  const TimePoint until = Clock::now() + std::chrono::seconds(60);
  Process mpirun(
      {"mpirun", "--allow-run-as-root", "--oversubscribe", "--output-filename",
       folder.string() + ":nocopy", "-np", "4", worker_path(), "collectives", "elements_max=10000"},
      {});
  const std::string output = mpirun.read_all(until);
  EXPECT_EQ(mpirun.wait(until), 0) << output;
  std::vector<Facts> all;
  for (int rank = 0; rank < 4; ++rank) {
    std::ifstream file(folder / "1" / ("rank." + std::to_string(rank)) / "stdout");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    for (Facts& facts : facts_in(text)) all.push_back(std::move(facts));
  }
  std::filesystem::remove_all(folder);
  expect_four_ranks(all);
}

TEST(Launcher, TorchrunsVariablesMakeAGroup) {
  const std::string port = std::to_string(free_port());
  std::vector<Process> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const std::string number = std::to_string(rank);
    ranks.emplace_back(std::vector<std::string>{worker_path(), "collectives", "elements_max=10000"},
                       Environment{{"RANK", number},
                                   {"WORLD_SIZE", "4"},
                                   {"LOCAL_RANK", number},
                                   {"LOCAL_WORLD_SIZE", "4"},
                                   {"MASTER_ADDR", "127.0.0.1"},
                                   {"MASTER_PORT", port}});
  }
  const TimePoint until = Clock::now() + std::chrono::seconds(60);
  std::vector<Facts> all;
  for (Process& rank : ranks) {
    for (Facts& facts : facts_in(rank.read_all(until))) all.push_back(std::move(facts));
    EXPECT_EQ(rank.wait(until), 0);
  }
  expect_four_ranks(all);
}

TEST(Launcher, OneRankNeedsNoLauncher) {
  Process alone({worker_path(), "collectives", "elements_max=10000"}, {});
  const auto all = facts_in(alone.read_all(Clock::now() + std::chrono::seconds(30)));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["problems"], Facts::array());
  EXPECT_EQ(all[0]["wrong"], 0u);
}

}  // namespace
}  // namespace leeway::integration
