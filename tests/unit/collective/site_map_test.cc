// Tests which ranks share a site.
#include "collective/site_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::collective {
namespace {

using ::testing::ElementsAre;

TEST(SiteMap, RanksOfASiteNeedNotBeNeighbours) {
  const std::vector<std::uint64_t> sites = {7, 9, 7, 9, 9, 7};
  const auto map = SiteMap::of(sites, 3);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->sites(), 2);
  EXPECT_EQ(map->ranks_per_site(), 3);
  EXPECT_EQ(map->site(), 1);
  EXPECT_EQ(map->place(), 1);
  EXPECT_THAT(map->inside(), ElementsAre(1, 3, 4));
  EXPECT_THAT(map->across(), ElementsAre(2, 3));
  EXPECT_EQ(map->rank(0, 2), 5);
}

TEST(SiteMap, HopsThatLeadNowhereAreNone) {
  const auto any = [](const std::vector<std::uint64_t>& sites) {
    return SiteMap::of(sites, 0).has_value();
  };
  EXPECT_TRUE(any({1, 1, 2, 2}));
  EXPECT_FALSE(any({1, 1, 1, 1}));  // one site
  EXPECT_FALSE(any({1, 2, 3, 4}));  // a rank each
  EXPECT_FALSE(any({1, 1, 1, 2}));  // unequally many
  EXPECT_FALSE(any({1, 1, 2, 0}));  // one rank names no site
  EXPECT_FALSE(any({}));
}

}  // namespace
}  // namespace leeway::collective
