// All scenarios in this repository must be readable, with valid cells.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "scenario/parse.h"
#include "scenario/set_field.h"
#include "scenario/sweep.h"

namespace leeway::sim::scenario {
namespace {

TEST(ShippedScenarios, AreValidInAllTheirCells) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(LEEWAY_SCENARIOS)) {
    if (entry.path().extension() != ".txtpb") continue;
    const auto scenario = read_file(entry.path().string());
    ASSERT_TRUE(scenario.ok()) << scenario.status().text();
    const auto grid = cells(*scenario);
    ASSERT_TRUE(grid.ok()) << entry.path() << ": " << grid.status().text();
    EXPECT_FALSE(scenario->description().empty()) << entry.path();
    auto full = *scenario;
    ASSERT_TRUE(apply_full(full).ok()) << entry.path();
    EXPECT_TRUE(cells(full).ok()) << entry.path();
    names.insert(scenario->name());
  }
  EXPECT_EQ(names.count("two_regions"), 1u);
}

TEST(ShippedScenarios, TwoRegionsIsAGridOfSixteenCells) {
  const auto scenario = read_file(std::string(LEEWAY_SCENARIOS) + "/two_regions.txtpb");
  ASSERT_TRUE(scenario.ok()) << scenario.status().text();
  const auto grid = cells(*scenario);
  ASSERT_TRUE(grid.ok()) << grid.status().text();
  ASSERT_EQ(grid->size(), 16u);
  EXPECT_EQ(to_string(grid->at(6).settings),
            "link[2].rate_mbps=400 link[2].loss.gilbert_elliott.p=0.002");
  EXPECT_EQ(grid->at(6).scenario.link(2).rate_mbps(), 400.0);
}

// Returns the README's first block that begins with "ranks:".
std::string example_of_the_readme() {
  std::ifstream file(LEEWAY_SCENARIO_README);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = text.find("```\nranks:");
  if (begin == std::string::npos) return {};
  return text.substr(begin + 4, text.find("```", begin + 4) - begin - 4);
}

TEST(Readme, ItsExampleIsAGridOfSixteenCells) {
  const auto scenario = parse_text(example_of_the_readme(), "README.md");
  ASSERT_TRUE(scenario.ok()) << scenario.status().text();
  const auto grid = cells(*scenario);
  ASSERT_TRUE(grid.ok()) << grid.status().text();
  EXPECT_EQ(grid->size(), 16u);
}

}  // namespace
}  // namespace leeway::sim::scenario
