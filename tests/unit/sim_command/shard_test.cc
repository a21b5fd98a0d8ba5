#include "sim/shard.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace leeway::tools::simulation {
namespace {

TEST(Shard, IsReadAsItIsWritten) {
  EXPECT_EQ(*parse_shard("2/4"), (Shard{2, 4}));
  EXPECT_EQ(*parse_shard("1/1"), (Shard{1, 1}));
  EXPECT_TRUE(parse_shard("")->whole());
  EXPECT_EQ(to_string(Shard{2, 4}), "shard 2 of 4");
}

TEST(Shard, AnythingElseIsRefusedWithItsText) {
  for (const char* text :
       {"2", "/", "0/4", "5/4", "1/0", "-1/4", "1/2/3", "a/b", "1/2 ", "1/1000001"}) {
    const auto shard = parse_shard(text);
    ASSERT_FALSE(shard.ok()) << text;
    EXPECT_EQ(shard.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(shard.status().text().find("--shard " + std::string(text)), std::string_view::npos);
  }
}

TEST(Shard, AllPartsTogetherHoldEveryRunOnce) {
  for (const std::uint32_t of : {1u, 2u, 3u, 7u, 40u}) {
    for (const std::size_t runs : {0u, 1u, 6u, 7u, 39u}) {
      std::vector<int> held(runs, 0);
      std::size_t most = 0, least = runs;
      for (std::uint32_t number = 1; number <= of; ++number) {
        const Shard shard{number, of};
        for (std::size_t i = 0; i < shard.share(runs); ++i) ++held.at(shard.place(i));
        most = std::max(most, shard.share(runs));
        least = std::min(least, shard.share(runs));
      }
      EXPECT_EQ(held, std::vector<int>(runs, 1)) << runs << " runs, " << of << " shards";
      EXPECT_LE(most - least, 1u);
    }
  }
}

std::string shard_under(std::map<std::string, std::string> environment) {
  const auto shard = launcher_shard([environment](const char* name) -> const char* {
    const auto at = environment.find(name);
    return at == environment.end() ? nullptr : at->second.c_str();
  });
  return shard.ok() ? *shard : std::string(shard.status().text());
}

TEST(Shard, ALaunchersRankSaysWhich) {
  EXPECT_EQ(shard_under({}), "");
  EXPECT_EQ(shard_under({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), "1/4");
  EXPECT_EQ(shard_under({{"LEEWAY_RANK", "3"}, {"LEEWAY_WORLD_SIZE", "4"}}), "4/4");
  EXPECT_EQ(shard_under({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}), "2/2");
  EXPECT_EQ(shard_under({{"SLURM_PROCID", "0"}}), "") << "a batch script is not a step";
  EXPECT_EQ(shard_under({{"LEEWAY_RANK", "0"}, {"LEEWAY_WORLD_SIZE", "1"}}), "");
  EXPECT_NE(shard_under({{"LEEWAY_RANK", "4"}, {"LEEWAY_WORLD_SIZE", "4"}}).find("LEEWAY_RANK"),
            std::string::npos);
}

}  // namespace
}  // namespace leeway::tools::simulation
